package livetest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// A finding is what the tables say of a kept tensor at a moment: the category that it is counted under, how that is known, and
// the module that holds it or made it.
type finding struct{ category, evidence, module string }

// Moments of a step at which kept tensors are looked for.
const (
	backwardBegins = "backward begins"
	graphReleased  = "the graph is released"
	nextBackward   = "the next backward begins"
)

// planted says where each keeper's tensor must be found. What autograd saved is its activation until the graph is released,
// whoever else holds it; what forward made and left, which no node saved, is known by when it lived.
var planted = map[string]map[string]finding{
	"module": {
		backwardBegins: {schemas.Activations, schemas.Lifetime, "0"},
		graphReleased:  {schemas.Activations, schemas.Lifetime, "0"}},
	"tensor hook": { // the graph's nodes hold the hook as long as the loss lives
		backwardBegins: {schemas.Activations, schemas.Lifetime, "1"},
		graphReleased:  {schemas.Activations, schemas.Lifetime, "1"}},
	"forward hook": { // saved by GELU, which is the block's; made by its first layer
		backwardBegins: {schemas.Activations, schemas.Tagged, "2"},
		graphReleased:  {schemas.Other, schemas.ByPhase, "2.up"}},
	"closure": { // made outside, and saved by the loss
		backwardBegins: {schemas.Activations, schemas.Tagged, ""}},
	"stray output": {
		backwardBegins: {schemas.Outputs, schemas.Tagged, ""},
		graphReleased:  {schemas.Outputs, schemas.Tagged, ""},
		nextBackward:   {schemas.Outputs, schemas.Tagged, ""}},
	"stray global": {
		nextBackward: {schemas.Other, schemas.ByPhase, ""}},
}

// Tensors of known sizes that a script keeps alive in ways of its own are found, to the byte, in every step.
func TestPlantedTensors(t *testing.T) {
	python := testkit.Python(t)
	takeSlot(t)
	r := record(t, environment(), python, script(t, "planted.py"))
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
	begins := map[string][]int64{}
	phases, err := schemas.Phases.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range phases {
		if p.Phase == schemas.PhaseBackward || p.Phase == schemas.PhaseOptimizer {
			begins[p.Phase] = append(begins[p.Phase], p.BeginSeq)
		}
	}
	for n, line := range lines {
		var kept map[string]storage
		if err := json.Unmarshal([]byte(line), &kept); err != nil {
			t.Fatal(err)
		}
		if len(kept) != len(planted) {
			t.Fatalf("%d tensors planted, %d expected", len(kept), len(planted))
		}
		moments := map[string]int64{backwardBegins: begins[schemas.PhaseBackward][n], graphReleased: begins[schemas.PhaseOptimizer][n]}
		if n+1 < len(lines) {
			moments[nextBackward] = begins[schemas.PhaseBackward][n+1]
		}
		for moment, seq := range moments {
			blocks := countedAt(t, r.dir, seq)
			for keeper, at := range planted {
				if want, ok := at[moment]; ok {
					where := fmt.Sprintf("step %d, %s: %s", n, moment, keeper)
					expectFound(t, where, blocks, kept[keeper], want, steps[n].Instrumented)
				}
			}
		}
	}
}

// expectFound checks one tensor. In a bare step, which has no tags, tagged blocks are known by their twins of a step that has.
func expectFound(t *testing.T, where string, blocks []counted, s storage, want finding, instrumented bool) {
	t.Helper()
	i := slices.IndexFunc(blocks, func(b counted) bool { return b.block.Address == s[0] })
	if i < 0 || blocks[i].block.RequestedBytes != int64(s[1]) {
		t.Errorf("%s: no block of %d bytes at %#x", where, s[1], s[0])
		return
	}
	b := &blocks[i]
	if !instrumented && want.evidence == schemas.Tagged && b.evidence == schemas.Lifetime {
		want.evidence = schemas.Lifetime
	}
	if got := (finding{b.category, b.evidence, b.module}); got != want {
		t.Errorf("%s: %+v, not %+v", where, got, want)
	}
}
