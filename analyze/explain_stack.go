package analyze

import (
	"cmp"
	"slices"
)

// ExplainedStack is one call path's part in the difference of the peaks, matched by functions and files, so that code
// that moved by some lines is still the same.
type ExplainedStack struct {
	Stack      *string `json:"stack"` // its innermost frames; null = not recorded
	FromBytes  int64   `json:"from_bytes"`
	ToBytes    int64   `json:"to_bytes"`
	DeltaBytes int64   `json:"delta_bytes"`
}

// stacksAt sums the bytes live just after event seq by the stack that asked for them; nil where no stack was recorded.
func (in *Input) stacksAt(p place, l *ledger, seq int64) map[string]int64 {
	frames := in.framesOf(p.rank)
	if len(frames) == 0 {
		return nil
	}
	names, bytes := map[int64]string{}, map[string]int64{}
	for _, a := range l.allocs {
		if !a.LiveAt(seq) {
			continue
		}
		name, ok := names[a.Stack]
		if !ok {
			name = stackText(frames[a.Stack], 0, false)
			names[a.Stack] = name
		}
		bytes[name] += a.BlockBytes
	}
	return bytes
}

// explainStacks lists the stacks that either peak counts, the largest difference first. They sum to the difference of
// the peaks. Where a run has none, there is nothing to match.
func explainStacks(from, to *Dissection) []ExplainedStack {
	out := []ExplainedStack{}
	if from.stacks == nil || to.stacks == nil {
		return out
	}
	by := map[string]*ExplainedStack{}
	of := func(name string) *ExplainedStack {
		if by[name] == nil {
			by[name] = &ExplainedStack{}
			if name != "" {
				by[name].Stack = &name
			}
		}
		return by[name]
	}
	for name, n := range from.stacks {
		of(name).FromBytes = n
	}
	for name, n := range to.stacks {
		of(name).ToBytes = n
	}
	for _, s := range by {
		s.DeltaBytes = s.ToBytes - s.FromBytes
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b ExplainedStack) int {
		return cmp.Or(cmp.Compare(magnitude(b.DeltaBytes), magnitude(a.DeltaBytes)), cmp.Compare(b.ToBytes, a.ToBytes),
			cmp.Compare(a.Title(), b.Title()))
	})
	return out
}

// Title is what the stack is shown as.
func (s *ExplainedStack) Title() string {
	if s.Stack == nil {
		return "–"
	}
	return *s.Stack
}
