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

// A finding is what the tables say about a kept tensor at a moment: the category that it counts under, the
// evidence, and the module that holds it or made it.
type finding struct{ category, evidence, module string }

// Moments of a step at which kept tensors are looked for.
const (
	backwardBegins = "backward begins"
	graphReleased  = "the graph is released"
	nextBackward   = "the next backward begins"
)

// always is a tensor that is the same at every moment from the next step on, and at these two.
func always(f finding) map[string]finding {
	return map[string]finding{backwardBegins: f, graphReleased: f, nextBackward: f}
}

// planted lists how each keeper's tensor must be found. A tensor that autograd saved is an activation until the
// graph is released, whoever else holds it. A tensor that forward made and left, without a node that saved it, is
// classified by its lifetime: it may have been an activation, but no longer is one. A tensor that the script's
// globals, closures and tensor hooks keep is script, tagged with its name. Otherwise only the bytes and the phase
// are certain.
var planted = map[string]map[string]finding{
	"cache": { // a module's, made again in each forward
		backwardBegins: {schemas.Script, schemas.Tagged, "0"},
		graphReleased:  {schemas.Script, schemas.Tagged, "0"}},
	"saved attribute": { // by the next layer, which backward comes to first
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
	// the graph's nodes hold the hook as long as the loss lives
	"tensor hook": always(finding{schemas.Script, schemas.Tagged, "1"}),
	"forward hook": { // saved by GELU, which is the block's; made by its first layer
		backwardBegins: {schemas.Activations, schemas.Tagged, "2"},
		graphReleased:  {schemas.Script, schemas.Tagged, ""}},
	"focal": { // class weights that the loss has as an attribute
		backwardBegins: {schemas.Activations, schemas.Tagged, ""},
		graphReleased:  {schemas.Script, schemas.Tagged, ""}},
	"closure": { // class weights that only the loss's closure holds
		backwardBegins: {schemas.Activations, schemas.Tagged, ""},
		graphReleased:  {schemas.Script, schemas.Tagged, ""}},
	"retained": { // by the graph of a loss whose backward kept it
		backwardBegins: {schemas.Activations, schemas.Tagged, ""},
		graphReleased:  {schemas.Activations, schemas.Tagged, ""}},
	"prefetched": { // on a stream of its own, during forward
		backwardBegins: {schemas.Inputs, schemas.Tagged, ""},
		graphReleased:  {schemas.Inputs, schemas.Tagged, ""}},
	"stray output": {
		backwardBegins: {schemas.Activations, schemas.Tagged, ""}, // the retained graph's
		graphReleased:  {schemas.Outputs, schemas.Tagged, ""},
		nextBackward:   {schemas.Script, schemas.Tagged, ""}},
	"loss": {
		backwardBegins: {schemas.Outputs, schemas.Tagged, ""},
		graphReleased:  {schemas.Outputs, schemas.Tagged, ""},
		nextBackward:   {schemas.Script, schemas.Lifetime, ""}},
	"validation":      {nextBackward: {schemas.Script, schemas.Tagged, ""}}, // the model has been called since
	"stray global":    {nextBackward: {schemas.Script, schemas.Tagged, ""}},
	"gradient copies": {nextBackward: {schemas.Script, schemas.Tagged, ""}},
	"average":         always(finding{schemas.Script, schemas.Tagged, ""}),
}

// weights are the weights of losses. They are older than the steps that use them.
var weights = map[string]bool{"focal": true, "closure": true}

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
	if len(lines) != 8 || len(steps) != len(lines) {
		t.Fatalf("%d lines, %d steps", len(lines), len(steps))
	}
	phases, err := schemas.Phases.Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	begins := func(step int, phase string) int64 { // the step's first
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
				case keeper == "prefetched" && n+1 == len(lines): // the model never gets it
				// its first step has yet to make it
				case strings.HasPrefix(keeper, "optimizer") && n == 0 && moment == graphReleased:
				// no tag shows it, and they have no matches
				case want.category == schemas.Activations && weights[keeper] && !instrumented:
				default:
					where := fmt.Sprintf("step %d, %s: %s", n, moment, keeper)
					expectFound(t, where, blocks, s, want, instrumented)
				}
			}
		}
	}
}

// expectFound checks one tensor. In a bare step, which has no tags, tagged blocks are known by their matches of a step
// that has.
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
