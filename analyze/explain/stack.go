package explain

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// StackPart is one call path's part in the difference of the peaks, matched by functions and files, so that code
// that moved by some lines is still the same.
type StackPart struct {
	Stack      *string `json:"stack"` // its innermost frames; null = not recorded
	FromBytes  int64   `json:"from_bytes"`
	ToBytes    int64   `json:"to_bytes"`
	DeltaBytes int64   `json:"delta_bytes"`
}

// stacksAt sums the bytes live just after event seq by the stack that asked for them; nil if no stack was recorded.
func stacksAt(in *schemas.Tables, p identity.Place, l *memory.Ledger, seq int64) map[string]int64 {
	frames := grouping.FramesOf(in, p.Rank)
	if len(frames) == 0 {
		return nil
	}
	names, bytes := map[int64]string{}, map[string]int64{}
	for _, a := range l.Allocs {
		if !a.LiveAt(seq) {
			continue
		}
		name, ok := names[a.Stack]
		if !ok {
			name = grouping.StackText(frames[a.Stack], 0, false)
			names[a.Stack] = name
		}
		bytes[name] += a.BlockBytes
	}
	return bytes
}

// explainStacks lists the stacks that either peak counts, the largest difference first. The differences add up to the
// difference of the peaks. explainStacks returns none if a run has no stacks to match.
func explainStacks(from, to *Input) []StackPart {
	out := []StackPart{}
	if from.stacks == nil || to.stacks == nil {
		return out
	}
	by := map[string]*StackPart{}
	of := func(name string) *StackPart {
		if by[name] == nil {
			by[name] = &StackPart{}
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
	slices.SortFunc(out, func(a, b StackPart) int {
		return cmp.Or(cmp.Compare(magnitude(b.DeltaBytes), magnitude(a.DeltaBytes)),
			cmp.Compare(b.ToBytes, a.ToBytes),
			cmp.Compare(a.Title(), b.Title()))
	})
	return out
}

// Title is what the stack is shown as.
func (s *StackPart) Title() string {
	if s.Stack == nil {
		return "–"
	}
	return *s.Stack
}
