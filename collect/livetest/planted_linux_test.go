package livetest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// A finding is what the tables have about a kept tensor at a moment: the category under which the tensor counts, the
// evidence, and the module that holds or made the tensor.
type finding struct{ category, evidence, module string }

// backwardBegins and the other constants name the moments of a step at which the test looks for kept tensors.
const (
	backwardBegins = "backward begins"
	graphReleased  = "the graph is released"
	nextBackward   = "the next backward begins"
)

// always returns the expectation that a kept tensor has the same finding at all three moments.
func always(f finding) map[string]finding {
	return map[string]finding{backwardBegins: f, graphReleased: f, nextBackward: f}
}

// planted lists, for each way of keeping a tensor in planted.py, what the tables must have about the tensor at which
// moment. A tensor that autograd saved is an activation until the graph is released, whoever else holds it. A tensor
// that forward made and left, and that no node of autograd saved, is classified by its lifetime. A tensor that a
// global, a closure or a tensor hook of the script keeps is script, and is tagged with its name.
var planted = map[string]map[string]finding{
	"cache": { // a module keeps this tensor, and makes it again in each forward
		backwardBegins: {schemas.Script, schemas.Tagged, "0"},
		graphReleased:  {schemas.Script, schemas.Tagged, "0"}},
	"saved attribute": { // the next layer saves this tensor, and backward comes to that layer first
		backwardBegins: {schemas.Activations, schemas.Tagged, "1.up"},
		graphReleased:  {schemas.Script, schemas.Tagged, "0"}},
	"table":          always(finding{schemas.Script, schemas.Tagged, "0"}),
	"boxes":          always(finding{schemas.Script, schemas.Tagged, "0"}),
	"late buffer":    always(finding{schemas.Buffers, schemas.Tagged, ""}),
	"late parameter": always(finding{schemas.Parameters, schemas.Tagged, ""}),
	"teacher":        always(finding{schemas.Parameters, schemas.Tagged, ""}),
	"optimizer": {graphReleased: {schemas.OptimizerState, schemas.Tagged, ""},
		nextBackward: {schemas.OptimizerState, schemas.Tagged, ""}},
	"optimizer key": {graphReleased: {schemas.OptimizerState, schemas.Tagged, ""},
		nextBackward: {schemas.OptimizerState, schemas.Tagged, ""}},
	// the nodes of the graph hold the hook as long as the loss lives
	"tensor hook": always(finding{schemas.Script, schemas.Tagged, "1"}),
	"forward hook": { // the block's GELU saves this tensor, which the block's first layer made
		backwardBegins: {schemas.Activations, schemas.Tagged, "2"},
		graphReleased:  {schemas.Script, schemas.Tagged, ""}},
	"focal": { // these class weights are an attribute of the loss
		backwardBegins: {schemas.Activations, schemas.Tagged, ""},
		graphReleased:  {schemas.Script, schemas.Tagged, ""}},
	"closure": { // only the loss's closure holds these class weights
		backwardBegins: {schemas.Activations, schemas.Tagged, ""},
		graphReleased:  {schemas.Script, schemas.Tagged, ""}},
	"retained": { // the graph that this loss's backward did not release holds the tensor
		backwardBegins: {schemas.Activations, schemas.Tagged, ""},
		graphReleased:  {schemas.Activations, schemas.Tagged, ""}},
	"prefetched": { // the script copies this batch on another stream, during forward
		backwardBegins: {schemas.Inputs, schemas.Tagged, ""},
		graphReleased:  {schemas.Inputs, schemas.Tagged, ""}},
	"stray output": {
		backwardBegins: {schemas.Activations, schemas.Tagged, ""}, // the retained graph holds it
		graphReleased:  {schemas.Outputs, schemas.Tagged, ""},
		nextBackward:   {schemas.Script, schemas.Tagged, ""}},
	"loss": {
		backwardBegins: {schemas.Outputs, schemas.Tagged, ""},
		graphReleased:  {schemas.Outputs, schemas.Tagged, ""},
		nextBackward:   {schemas.Script, schemas.Lifetime, ""}},
	"validation":      {nextBackward: {schemas.Script, schemas.Tagged, ""}}, // an output before the last call
	"stray global":    {nextBackward: {schemas.Script, schemas.Tagged, ""}},
	"gradient copies": {nextBackward: {schemas.Script, schemas.Tagged, ""}},
	"average":         always(finding{schemas.Script, schemas.Tagged, ""}),
}

// weights names the keepers whose tensors are the class weights of losses. Class weights are older than the steps that
// use them.
var weights = map[string]bool{"focal": true, "closure": true}

// planted.py keeps tensors of known sizes alive in several ways. In every step the tables have a block of exactly that
// size, with the right category, evidence and module.
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
	if len(lines) != 8 || len(steps) != len(lines) {
		t.Fatalf("%d lines, %d steps", len(lines), len(steps))
	}
	phases, err := schemas.Phases.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	begins := func(step int, phase string) int64 { // the begin of the step's first phase with this name
		i := slices.IndexFunc(phases, func(p schemas.Phase) bool { return p.Step == int64(step) && p.Phase == phase })
		if i < 0 {
			t.Fatalf("step %d has no %s", step, phase)
		}
		return phases[i].BeginSeq
	}
	for n, line := range lines {
		kept := map[string]storage{}
		if err := json.Unmarshal([]byte(line), &kept); err != nil {
			t.Fatal(err)
		}
		moments := map[string]int64{backwardBegins: begins(n, schemas.PhaseBackward), graphReleased: begins(n,
			schemas.PhaseOptimizer)}
		if n+1 < len(lines) {
			moments[nextBackward] = begins(n+1, schemas.PhaseBackward)
		}
		for moment, seq := range moments {
			blocks := countedAt(t, r.dir, seq)
			for keeper, at := range planted {
				want, ok := at[moment]
				s, there := kept[keeper]
				if !there && (keeper != "late parameter" || n > 2) {
					t.Fatalf("step %d: nothing is planted for %q", n, keeper)
				}
				instrumented := steps[n].Instrumented && (moment != nextBackward || steps[n+1].Instrumented)
				switch {
				case !ok || !there:
				case keeper == "prefetched" && n+1 == len(lines): // the script ends before the model gets the batch
				// the optimizer's first update has yet to make this state
				case strings.HasPrefix(keeper, "optimizer") && n == 0 && moment == graphReleased:
				// a bare step has no tags, and these weights match no block of another step
				case want.category == schemas.Activations && weights[keeper] && !instrumented:
				default:
					where := fmt.Sprintf("step %d, %s: %s", n, moment, keeper)
					expectFound(t, where, blocks, s, want, instrumented)
				}
			}
		}
	}
}

// expectFound checks what the tables have about one tensor. A bare step has no tags, so there the evidence for the
// tensor may be its lifetime: it matches a tagged block of an instrumented step.
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
