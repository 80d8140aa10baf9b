package explain

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// StackPart is one call path's part in the difference of the peaks. Call paths match by functions and files, so code
// that moved by some lines still matches.
type StackPart struct {
	Stack      *string `json:"stack"` // innermost frames of the stack; null = not recorded
	FromBytes  int64   `json:"from_bytes"`
	ToBytes    int64   `json:"to_bytes"`
	DeltaBytes int64   `json:"delta_bytes"`
}

// stacksAt sums the bytes that are live just after event seq by the stack that requested them. stacksAt returns nil if
// no stack was recorded.
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

// explainStacks lists the stacks with bytes at either run's peak, the largest difference first. The differences add up
// to the difference of the peaks. explainStacks returns none if either run has no stacks.
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

// Title returns the heading under which the stack is shown.
func (s *StackPart) Title() string {
	if s.Stack == nil {
		return "–"
	}
	return *s.Stack
}
