package livetest_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// If several models have parameters with the same names, the names in the tables begin with the model's class and a
// number, such as Net#1. Names that only one model has stay unchanged.
func TestModelsOfOneClass(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	r := record(t, environment(), python, script(t, "pair.py"))
	if r.manifest.Status != schemas.StatusOK {
		t.Fatalf("status %s (%s)", r.manifest.Status, r.manifest.Reason)
	}
	steps, err := schemas.Steps.Read(r.dir)
	if err != nil || len(steps) != 3 {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	blocks := map[string]int{}
	for _, b := range countedAt(t, r.dir, steps[2].EndSeq) {
		if b.category == schemas.Parameters || b.category == schemas.Buffers {
			blocks[b.name]++
		}
	}
	want := map[string]int{"0.weight": 1, "0.bias": 1}
	for _, model := range []string{"Net#1.", "Net#2.", "Net#3."} {
		for _, name := range []string{"up.weight", "up.bias", "down.weight", "down.bias", "shift"} {
			want[model+name] = 1
		}
	}
	if !maps.Equal(blocks, want) {
		t.Errorf("%v, not %v", blocks, want)
	}
	modules, err := schemas.Modules.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, m := range modules {
		if m.Class == "Linear" {
			paths = append(paths, m.Path)
		}
	}
	slices.Sort(paths)
	if want := []string{"0", "Net#1.down", "Net#1.up", "Net#2.down", "Net#2.up", "Net#3.down",
		"Net#3.up"}; !slices.Equal(paths, want) {
		t.Errorf("modules %q, not %q", paths, want)
	}
}
