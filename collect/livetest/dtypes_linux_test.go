package livetest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// In the tables, the block of every tensor that the script printed has the dtype that the script printed, in
// instrumented and in bare steps.
func TestDTypes(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	r := record(t, environment(), python, script(t, "dtypes.py"))
	if r.manifest.Status != schemas.StatusOK {
		t.Fatalf("status %s (%s)", r.manifest.Status, r.manifest.Reason)
	}
	expectConserved(t, r.dir, r.report)
	lines := linesOf(t, r.stdout, "TYPED ")
	phases, err := schemas.Phases.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := schemas.Allocations.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 6 {
		t.Fatalf("%d lines", len(lines))
	}
	seen := map[string]int{}
	for _, p := range phases {
		if p.Phase != schemas.PhaseOptimizer {
			continue
		}
		var tensors [][3]any
		if err := json.Unmarshal([]byte(lines[p.Step]), &tensors); err != nil {
			t.Fatal(err)
		}
		for _, s := range tensors {
			address, bytes, want := uint64(s[0].(float64)), int64(s[1].(float64)), strings.TrimPrefix(s[2].(string),
				"torch.")
			found := false
			for i := range blocks {
				if a := &blocks[i]; a.Address == address && a.LiveAt(p.EndSeq) {
					if found = true; a.RequestedBytes != bytes || a.DType != want {
						t.Errorf("step %d: block %d of %d bytes has dtype %q, want %d bytes of %s", p.Step, a.AllocID,
							a.RequestedBytes, a.DType, bytes, want)
					}
				}
			}
			if !found {
				t.Errorf("step %d: no block for %d bytes of %s", p.Step, bytes, want)
			}
			seen[want]++
		}
	}
	for _, d := range []string{"bfloat16", "float32", "float64", "int64", "bool"} {
		if seen[d] == 0 {
			t.Errorf("no tensor of %s was looked at", d)
		}
	}
}
