package livetest_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// A tensor that the script gives to a model as a keyword argument counts as an input, too.
func TestKeywordInputs(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	r := record(t, environment(), python, script(t, "keywords.py"))
	if r.manifest.Status != schemas.StatusOK {
		t.Fatalf("status %s (%s)", r.manifest.Status, r.manifest.Reason)
	}
	expectConserved(t, r.dir, r.report)
	steps, err := schemas.Steps.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := linesOf(t, r.stdout, "PLANTED ")
	if len(lines) != 6 || len(steps) != len(lines) {
		t.Fatalf("%d lines, %d steps", len(lines), len(steps))
	}
	phases, err := schemas.Phases.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range phases {
		if p.Phase != schemas.PhaseOptimizer {
			continue
		}
		var given map[string]storage
		if err := json.Unmarshal([]byte(lines[p.Step]), &given); err != nil {
			t.Fatal(err)
		}
		blocks := countedAt(t, r.dir, p.BeginSeq) // at this event autograd no longer holds the inputs
		for name, s := range given {
			where := fmt.Sprintf("step %d: %s", p.Step, name)
			expectFound(t, where, blocks, s, finding{schemas.Inputs, schemas.Tagged, ""}, steps[p.Step].Instrumented)
		}
	}
}
