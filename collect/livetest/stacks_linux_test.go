package livetest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// With --stacks, allocations of the set-up and of the first steps have a stack, so the breakdown by stack shows a
// planted tensor under the function that keeps it. explain matches the stacks of two versions of a script by functions
// and files. So code that only moved to other lines makes no difference, and a changed size does.
func TestStacks(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	const planted = 24 << 20
	source, err := os.ReadFile(script(t, "stacks.py"))
	if err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "stacks.py")
	lines := strings.SplitAfter(string(source), "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "def make_model") })
	lines = slices.Insert(lines, at, "# one line more\n", "UNUSED = 1\n", "\n", "\n")
	if err := os.WriteFile(moved, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	stacks := func(path, bytes string) *recorded {
		return recordAs(t, environment(), func(e *collect.Experiment) {
			e.Stacks, e.StackSteps = true, new(2)
		}, python, path, "4", bytes)
	}
	plain := stacks(script(t, "stacks.py"), "25165824")
	larger := stacks(moved, "33554432")
	for _, r := range []*recorded{plain, larger} {
		if r.manifest.Status != schemas.StatusOK {
			t.Fatalf("status %s (%s)", r.manifest.Status, r.manifest.Reason)
		}
		expectConserved(t, r.dir, r.report)
	}
	in := tables(t, plain.dir)
	for _, a := range in.Allocations {
		if late := a.Step >= 2; late && a.Stack != 0 {
			t.Errorf("step %d still has stacks: %+v", a.Step, a)
		}
	}
	by, err := grouping.BreakdownBy(
		in, memory.At{}, grouping.By{Dimensions: []grouping.Dimension{grouping.DimensionStack},
			Depth: 1})
	if err != nil {
		t.Fatal(err)
	}
	keep := slices.IndexFunc(by.Devices[0].Rows, func(r grouping.ByRow) bool {
		return r.Key != nil && strings.HasPrefix(*r.Key, "keep ")
	})
	if keep < 0 || by.Devices[0].Rows[keep].Bytes != planted {
		t.Errorf("the planted tensor: %+v", by.Devices[0].Rows)
	}
	// A stack leaves out dpsight's own frames between the script's frames.
	whole, err := grouping.BreakdownBy(in, memory.At{},
		grouping.By{Dimensions: []grouping.Dimension{grouping.DimensionStack}, Depth: 100, FullStack: true})
	if err != nil {
		t.Fatal(err)
	}
	moves, move := 0,
		regexp.MustCompile(
			`^[\w<>]+ modules/module.py:\d+ < (_apply modules/module.py:\d+ < )+cuda modules/module.py:\d+ < make_model `)
	for _, r := range whole.Devices[0].Rows {
		if r.Key == nil {
			continue
		}
		if strings.Contains(*r.Key, "phantom_") || strings.Contains(*r.Key, " dpsight/") {
			t.Errorf("frames of ours: %s", *r.Key)
		}
		if move.MatchString(*r.Key) {
			moves++
		}
	}
	if moves == 0 {
		t.Errorf("no move of the model from its script on: %+v", whole.Devices[0].Rows)
	}
	doc, err := explain.Explain(explain.NewInput(in), explain.NewInput(tables(t, larger.dir)))
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, s := range doc.Stacks {
		sum += s.DeltaBytes
		if kept := s.Stack != nil && strings.HasPrefix(*s.Stack, "keep "); kept != (s.DeltaBytes != 0) {
			t.Errorf("%+v", s)
		}
	}
	if len(doc.Stacks) == 0 || sum != *doc.PeakDeltaBytes || sum != 8<<20 {
		t.Errorf("%d stacks, which sum to %d of %d", len(doc.Stacks), sum, *doc.PeakDeltaBytes)
	}
}
