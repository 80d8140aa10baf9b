package livetest_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// heldFacts has the bytes that windows.py found at the end of a step, by category. Kept counts the tensors in the
// script's global variable kept.
type heldFacts struct {
	Step           int64 `json:"step"`
	Parameters     int64 `json:"parameters"`
	Gradients      int64 `json:"gradients"`
	OptimizerState int64 `json:"optimizer_state"`
	Kept           int64 `json:"kept"`
}

// A second window of recorded steps, after steps that were not recorded, is exact. Every counter of torch agrees.
// Parameters, gradients and optimizer state have as many bytes as in the script, including tensors that were made
// between the windows.
func TestWindows(t *testing.T) {
	python := testkit.Python(t)
	takeSlot(t)
	const first, window, opens, total = 6, 10, 200, 212
	r := recordAs(t, environment(), func(e *collect.Experiment) {
		e.RecordSteps, e.WindowSteps = new(first), new(window)
	}, python, script(t, "windows.py"), strconv.Itoa(total))
	if r.manifest.Status != schemas.StatusOK || len(r.report.Devices) != 1 {
		t.Fatalf("status %s (%s), %d devices", r.manifest.Status, r.manifest.Reason, len(r.report.Devices))
	}
	v := r.report.Devices[0]
	if v.Verdict != schemas.Exact || v.ResidueBytes != 0 || v.MissingEvents != 0 || v.AmbiguousTags != 0 ||
		v.UnboundTags != 0 || v.DifferingBlocks != 0 {
		t.Fatalf("%+v", v)
	}
	if c := r.report.Cost[0]; c.Windows != 2 || c.RecordedSteps != first+window {
		t.Errorf("%d steps in %d windows", c.RecordedSteps, c.Windows)
	}
	in := tables(t, r.dir)
	steps := map[int64]schemas.Step{}
	for _, s := range in.Steps {
		steps[s.Step] = s
		if want := s.Step < first || s.Step >= opens && s.Step < opens+window; s.Recorded != want {
			t.Errorf("step %d: recorded %v", s.Step, s.Recorded)
		}
		if want := s.Step < 3 || s.Step < first && s.Step%2 == 1 || s.Step == opens ||
			s.Step == opens+8; s.Instrumented != want {
			t.Errorf("step %d: instrumented %v", s.Step, s.Instrumented)
		}
	}
	checkpoints, err := schemas.Checkpoints.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	late := 0
	for _, c := range checkpoints {
		if c.Recorded && !c.Agrees {
			t.Errorf("%+v", c)
		}
		if c.Recorded && c.Seq > steps[opens].BeginSeq {
			late++
		}
	}
	if late == 0 {
		t.Error("no counter was checked after the gap")
	}
	said := map[int64]heldFacts{}
	for line := range strings.Lines(r.stdout) {
		if text, ok := strings.CutPrefix(line, "FACTS "); ok {
			var f heldFacts
			if err := json.Unmarshal([]byte(text), &f); err != nil {
				t.Fatal(err)
			}
			said[f.Step] = f
		}
	}
	for _, step := range []int64{2, 5, opens, opens + 1, opens + 2, opens + 5, opens + 8} {
		seq := steps[step].EndSeq
		b, err := memory.Breakdown(in, memory.At{Event: &seq})
		if err != nil {
			t.Fatal(err)
		}
		bytes := map[string]int64{}
		for _, c := range b.Devices[0].Categories {
			bytes[c.Category] = c.Bytes
		}
		want := said[step]
		got := heldFacts{step, bytes[schemas.Parameters], bytes[schemas.Gradients], bytes[schemas.OptimizerState],
			named(t, in, seq, "global kept")}
		// The second window's breakdowns name the tensors that the script kept in steps 40 to 160, between the
		// windows. The tensor of step 0 is too small for the agent to search its name. The tensor of step 200 is made
		// after that step's end.
		want.Kept = 0
		for at := int64(40); at < step && step >= opens; at += 40 {
			want.Kept += (4*1000*(at+1) + 511) / 512 * 512 // the block's slack counts under the name too
		}
		if bytes[schemas.Untraced] != 0 {
			t.Errorf("step %d: %d bytes are untraced", step, bytes[schemas.Untraced])
		}
		if got != want {
			t.Errorf("step %d: %+v, the script says %+v", step, got, want)
		}
	}
}

// named returns how many bytes the breakdown by name has for a name just after an event.
func named(t *testing.T, in schemas.Tables, event int64, name string) int64 {
	t.Helper()
	b, err := grouping.BreakdownBy(in, memory.At{Event: &event},
		grouping.By{Dimensions: []grouping.Dimension{grouping.DimensionName}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range b.Devices[0].Rows {
		if row.Key != nil && *row.Key == name {
			return row.Bytes
		}
	}
	return 0
}

func tables(t *testing.T, dir string) schemas.Tables {
	t.Helper()
	sel, err := store.Open(dir).Resolve([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := store.Load(sel.Runs[0], findings.Tables)
	if err != nil {
		t.Fatal(err)
	}
	return *tab
}
