package explain

import (
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// If both runs have stacks, the differences by stack sum to the difference of the peaks. If either run has no stacks,
// the explanation has no parts by stack.
func TestExplainStacks(t *testing.T) {
	run := func(line, bytes int64) schemas.Tables {
		in := fixture.Hooked()
		in.Stacks = []schemas.StackFrame{{Stack: 1, Function: "keep", File: "/a/train.py", Line: line},
			{Stack: 2, Function: "main", File: "/a/train.py", Line: 2 * line}}
		for i := range in.Allocations {
			in.Allocations[i].Stack = int64(i % 3)
			if i%3 == 1 {
				in.Allocations[i].BlockBytes += bytes
				in.Allocations[i].RequestedBytes += bytes
			}
		}
		return in
	}
	at := func(in schemas.Tables) *Input {
		d := Input{}
		v := in.Report.Devices[0]
		p := identity.Place{Rank: v.Rank, Device: v.Device}
		d.stacks = stacksAt(&in, p, memory.NewLedger(&in, p), v.PeakSeq)
		return &d
	}
	a, b := run(10, 0), run(70, 512)
	got := explainStacks(at(a), at(b))
	var sum, from, to int64
	for _, s := range got {
		sum += s.DeltaBytes
		from += s.FromBytes
		to += s.ToBytes
		if moved := s.Stack != nil && *s.Stack == "keep train.py"; moved != (s.DeltaBytes != 0) {
			t.Errorf("%s: %+v", s.Title(), s)
		}
	}
	if len(got) == 0 || sum == 0 || sum != to-from {
		t.Errorf("%+v", got)
	}
	b.Stacks = nil
	if got := explainStacks(at(a), at(b)); len(got) != 0 {
		t.Errorf("matched with nothing: %+v", got)
	}
}
