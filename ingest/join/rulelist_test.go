package join

import (
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
)

// ruleTests names the test of each rule, in the order of ruleList.
var ruleTests = []struct {
	rule rule
	name string
	test func(*testing.T, rule)
}{
	{bucketOfGradients, "bucketOfGradients", testBucketOfGradients},
	{untracedBlock, "untracedBlock", testUntracedBlock},
	{libraryWorkspace, "libraryWorkspace", testLibraryWorkspace},
	{bornInDPCode, "bornInDPCode", testBornInDPCode},
	{lossTarget, "lossTarget", testLossTarget},
	{forwardTemporary, "forwardTemporary", testForwardTemporary},
	{activation, "activation", testActivation},
	{bornInBackward, "bornInBackward", testBornInBackward},
	{bornInUpdate, "bornInUpdate", testBornInUpdate},
	{bornInSetup, "bornInSetup", testBornInSetup},
	{anythingElse, "anythingElse", testAnythingElse},
}

// Each rule has a test of its own, and doc.go names it in its place.
func TestRules(t *testing.T) {
	name := func(r rule) string {
		full := runtime.FuncForPC(reflect.ValueOf(r).Pointer()).Name()
		return full[strings.LastIndexByte(full, '.')+1:]
	}
	var list, tested []string
	for _, r := range ruleList {
		list = append(list, name(r))
	}
	for _, c := range ruleTests {
		if name(c.rule) != c.name {
			t.Errorf("the test of %s is called %s", name(c.rule), c.name)
		}
		tested = append(tested, c.name)
		t.Run(c.name, func(t *testing.T) { c.test(t, c.rule) })
	}
	if !slices.Equal(list, tested) {
		t.Errorf("rules %v, tests %v", list, tested)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "\n// # Rules\n")
	for _, r := range list {
		found := false
		if _, rest, found = strings.Cut(rest, "\n//   - "+r+": "); !found {
			t.Errorf("doc.go does not name the rule %s in its place", r)
		}
	}
}

// made is a time of an allocation that was made at event 10, in a phase of the first step.
func made(in family, with ...func(*unowned)) *unowned {
	u := &unowned{Alloc: &replay.Alloc{AllocSeq: 10}, birth: &birth{}, span: &steps.Span{}, family: in,
		begin: 10, end: never}
	for _, f := range with {
		f(u)
	}
	return u
}

func inside(u *unowned)    { u.inside = true }
func unmatched(u *unowned) { u.unmatched = true }

// expect holds a rule's verdict against "category/evidence", or "" where it does not apply.
func expect(t *testing.T, apply rule, r *rules, u *unowned, want string) verdict {
	t.Helper()
	v, ok := apply(r, u)
	got := ""
	if ok {
		got = schemas.Categories[v.category] + "/" + evidences[v.evidence]
	}
	if got != want {
		t.Errorf("family %d, time %d to %d, inside %v: %q, want %q", u.family, u.begin, u.end, u.inside, got, want)
	}
	return v
}

func testBucketOfGradients(t *testing.T, apply rule) {
	events := &schemas.EventColumns{}
	for range 10 {
		events.Append(schemas.ActionAlloc, 1, 1, 0, 0, 1, 0, 0)
	}
	f := &facts{Context: &Context{span: make([]int32, 3), reducers: []reducer{{name: 7, done: 2}},
		reducing: map[uint32]int{1: 1}}, positions: &positions{before: []int32{0, 0, 20}},
		device: Device{Events: events}, actions: events.Action, allocs: []replay.Alloc{{AllocSeq: 10}}}
	if v := expect(t, apply, &rules{f: f}, made(forwardFamily), "gradients/lifetime"); v.name != 7 {
		t.Errorf("its name is %d", v.name)
	}
	f.allocs[0].FreeRequestedSeq = 20 // the reducer let go of it while it made its buckets
	expect(t, apply, &rules{f: f}, made(forwardFamily), "")
	f.allocs[0].FreeRequestedSeq, f.reducers[0].done = 0, 0 // the reducer's call never ended
	expect(t, apply, &rules{f: f}, made(forwardFamily), "")
	f.reducers[0].done, f.reducing = 2, nil // made outside its call
	expect(t, apply, &rules{f: f}, made(forwardFamily), "")
}

func testUntracedBlock(t *testing.T, apply rule) {
	expect(t, apply, nil, made(forwardFamily, func(u *unowned) { u.untraced = true }), "untraced/lifetime")
	expect(t, apply, nil, made(forwardFamily), "")
}

func testLibraryWorkspace(t *testing.T, apply rule) {
	is, whole := func(u *unowned) { u.workspace = true }, func(u *unowned) { u.whole = true }
	expect(t, apply, nil, made(forwardFamily, is, whole), "workspace/lifetime")
	expect(t, apply, nil, made(forwardFamily, is), "") // something else is known of it
	expect(t, apply, nil, made(forwardFamily, whole), "")
}

func testBornInDPCode(t *testing.T, apply rule) {
	hook := func(u *unowned) { u.birth.dp = true }
	expect(t, apply, nil, made(backwardFamily, hook), "clip_temporaries/phase")
	expect(t, apply, nil, made(backwardFamily, hook, inside), "clip_temporaries/lifetime")
	expect(t, apply, nil, made(clipFamily, inside), "clip_temporaries/lifetime")
	expect(t, apply, nil, made(backwardFamily, inside), "")
}

func testLossTarget(t *testing.T, apply rule) {
	expect(t, apply, nil, made(otherFamily, func(u *unowned) { u.lossTarget = true }), "inputs/lifetime")
	expect(t, apply, nil, made(otherFamily), "")

	names := map[uint32]string{1: "MseLossBackward0", 2: "MulBackward0"}
	r := &rules{calls: true, f: &facts{Context: &Context{rank: &Rank{Names: names}}}}
	saved := func(node uint32) []owner { return []owner{{category: activations, name: node}} }
	for _, c := range []struct {
		what   string
		u      *unowned
		owners []owner
		want   bool
	}{
		{"a loss saved it", made(otherFamily), saved(1), true},
		{"a loss saved what set-up loaded", made(setupDataFamily), saved(1), true},
		{"a product saved it", made(otherFamily), saved(2), false},
		{"forward made it", made(forwardFamily), saved(1), false},
		{"it is older than the recording", made(otherFamily, func(u *unowned) { u.untraced = true }), saved(1), false},
		{"a hook holds it", made(otherFamily), []owner{{category: hookActivations, name: 1}}, false},
	} {
		if got := r.isLossTarget(c.u, c.owners); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if r.calls = false; r.isLossTarget(made(otherFamily), saved(1)) {
		t.Error("no forward pass is seen, and yet there is a target")
	}
}

func testForwardTemporary(t *testing.T, apply rule) {
	for _, in := range []family{forwardFamily, recomputeFamily, evalFamily} {
		expect(t, apply, nil, made(in, inside), "forward_temporaries/lifetime")
		expect(t, apply, nil, made(in), "")
	}
	expect(t, apply, nil, made(backwardFamily, inside), "")
}

func testActivation(t *testing.T, apply rule) {
	f := &facts{Context: &Context{rank: &Rank{Steps: &steps.Result{Spans: []steps.Span{{}}}}},
		allocs: []replay.Alloc{{AllocSeq: 10, FreeRequestedSeq: 90}}, births: []birth{{}}}
	r := &rules{f: f, phaseEnd: []int64{50}, events: 100, graphs: &graphs{f: f, releases: []release{{seq: 80}}}}
	freed := func(u *unowned) { u.Alloc.FreeRequestedSeq, u.end = 90, 90 }
	for _, in := range []family{forwardFamily, recomputeFamily} {
		if v := expect(t, apply, r, made(in, freed), "activations/lifetime"); v.until != 80 {
			t.Errorf("the graph is given up at 80, not at %d", v.until)
		}
		expect(t, apply, r, made(in, inside), "")
	}
	// Autograd was seen to hold it, and to let go.
	expect(t, apply, r, made(forwardFamily, func(u *unowned) { u.begin = 60 }), "other/phase")
	expect(t, apply, r, made(evalFamily), "")
	r.phaseEnd[0] = 100 // the recording ends in forward
	expect(t, apply, r, made(forwardFamily), "activations/phase")
	expect(t, apply, r, made(recomputeFamily), "activations/lifetime")
}

func testBornInBackward(t *testing.T, apply rule) {
	plain, private := &rules{}, &rules{private: true}
	expect(t, apply, plain, made(backwardFamily, inside), "activation_gradients/lifetime")
	expect(t, apply, plain, made(backwardFamily), "activation_gradients/phase")
	expect(t, apply, plain, made(backwardFamily, inside, unmatched), "activation_gradients/lifetime")
	expect(t, apply, private, made(backwardFamily, inside, unmatched), "activation_gradients/phase")
	expect(t, apply, private, made(backwardFamily, inside), "activation_gradients/lifetime")
	expect(t, apply, plain, made(backwardFamily, unmatched), "other/phase")
	expect(t, apply, plain, made(forwardFamily, inside), "")
}

func testBornInUpdate(t *testing.T, apply rule) {
	r := &rules{stepEnd: []int64{20, 40, 60}}
	in := func(step, free int64) func(*unowned) {
		return func(u *unowned) { u.span.Step, u.Alloc.FreeRequestedSeq = step, free }
	}
	expect(t, apply, r, made(updateFamily, inside, in(1, 12)), "optimizer_temporaries/lifetime")
	expect(t, apply, r, made(updateFamily, in(0, 0)), "optimizer_state/lifetime")
	expect(t, apply, r, made(updateFamily, in(1, 61)), "optimizer_state/lifetime")
	expect(t, apply, r, made(updateFamily, in(1, 60)), "optimizer_temporaries/phase")
	expect(t, apply, r, made(updateFamily, in(2, 0)), "optimizer_temporaries/phase") // no step follows that it outlives
	expect(t, apply, r, made(forwardFamily, inside), "")
	r.private = true
	expect(t, apply, r, made(updateFamily, inside, in(1, 12), unmatched), "optimizer_temporaries/phase")
	expect(t, apply, r, made(updateFamily, in(0, 0), unmatched), "optimizer_state/phase")
}

func testBornInSetup(t *testing.T, apply rule) {
	for in, want := range map[family]string{setupDataFamily: "inputs/phase", setupModelFamily: "parameters/phase",
		setupOptimizerFamily: "optimizer_state/phase", otherFamily: ""} {
		expect(t, apply, nil, made(in), want)
		expect(t, apply, nil, made(in, inside), "")
	}
}

func testAnythingElse(t *testing.T, apply rule) {
	expect(t, apply, nil, made(otherFamily), "other/phase")
	expect(t, apply, nil, made(evalFamily), "other/phase")
}
