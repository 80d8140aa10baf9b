package join

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
)

// Each rule R of the join has a test named TestRuleR that applies the rule. doc.go lists the rules in the same order as
// ruleList.
func TestRules(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "rulelist_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "\n// # Rules\n")
	for _, r := range ruleList {
		name := runtime.FuncForPC(reflect.ValueOf(r).Pointer()).Name()
		name = name[strings.LastIndexByte(name, '.')+1:]
		if test := "TestRule" + strings.ToUpper(name[:1]) + name[1:]; !applies(file, test, name) {
			t.Errorf("no %s applies the rule %s", test, name)
		}
		found := false
		if _, rest, found = strings.Cut(rest, "\n//   - "+name+": "); !found {
			t.Errorf("doc.go does not name the rule %s in its place", name)
		}
	}
}

// applies reports whether a file has a test with the given name that calls expect with the given rule.
func applies(file *ast.File, test, rule string) bool {
	called := false
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != test {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			name, _ := call.Fun.(*ast.Ident)
			arg, _ := call.Args[1].(*ast.Ident)
			called = called || name != nil && name.Name == "expect" && arg != nil && arg.Name == rule
			return true
		})
	}
	return called
}

// made returns a part of an allocation's life. The allocation was made at event 10, in a phase of the first step.
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

// expect compares a rule's verdict with want, which is "category/evidence", or "" if the rule must not apply.
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

func TestRuleBucketOfGradients(t *testing.T) {
	events := &schemas.EventColumns{}
	for range 10 {
		events.Append(schemas.ActionAlloc, 1, 1, 0, 0, 1, 0, 0)
	}
	f := &facts{context: &Context{span: make([]int32, 3), reducers: []reducer{{name: 7, done: 2}},
		reducing: map[uint32]int{1: 1}}, marks: &positions{before: []int32{0, 0, 20}},
		device: Device{Events: events}, actions: events.Action, allocs: []replay.Alloc{{AllocSeq: 10}}}
	if v := expect(t, bucketOfGradients, &rules{f: f}, made(forwardFamily), "gradients/lifetime"); v.name != 7 {
		t.Errorf("its name is %d", v.name)
	}
	f.allocs[0].FreeRequestedSeq = 20 // the reducer freed this block while it made its buckets
	expect(t, bucketOfGradients, &rules{f: f}, made(forwardFamily), "")
	f.allocs[0].FreeRequestedSeq, f.context.reducers[0].done = 0, 0 // the reducer's call never ended
	expect(t, bucketOfGradients, &rules{f: f}, made(forwardFamily), "")
	f.context.reducers[0].done, f.context.reducing = 2, nil // this block was made outside the reducer's call
	expect(t, bucketOfGradients, &rules{f: f}, made(forwardFamily), "")
}

// forwardRules returns rules for a device whose events lie in the forward pass of one step. Each event makes one
// allocation, and no event frees one. The allocation with index tagged has an owner by tag.
func forwardRules(tagged int, actions []schemas.Action, sizes []int64) *rules {
	result := &steps.Result{Spans: []steps.Span{{Under: schemas.PhaseForward}},
		Steps: []steps.Step{{EndK: 1, Recorded: true, Instrumented: true}}}
	f := &facts{context: &Context{rank: &Rank{Steps: result}, span: make([]int32, 2), thread: make([]uint16, 2),
		module: make([]uint32, 2), dp: make([]bool, 2)}}
	events := &schemas.EventColumns{}
	for i, a := range actions {
		events.Append(a, uint64(i), sizes[i], 0, 0, 0, 0, 0)
		f.allocs = append(f.allocs, replay.Alloc{Address: uint64(i), Requested: sizes[i], AllocSeq: int64(i) + 1})
	}
	n := int32(len(actions))
	// The step's last event comes after the last allocation, so a block that is not freed outlives the step.
	f.marks, f.actions = &positions{before: []int32{0, n + 1}, events: int64(n) + 2}, events.Action
	f.device, f.births = Device{Events: events}, make([]birth, n)
	owned := listsOf(int(n), 1, func(all []owner, alloc int) []owner {
		if alloc == tagged {
			all = append(all, owner{category: activations})
		}
		return all
	})
	m := &matches{}
	return &rules{f: f, matches: m, workspaces: findWorkspaces(f, owned, m)}
}

func TestRuleUntracedBlock(t *testing.T) {
	r := forwardRules(-1, []schemas.Action{schemas.ActionAlloc, schemas.ActionGap}, []int64{3 * mib, 3 * mib})
	r.f.allocs = append(r.f.allocs, replay.Alloc{Requested: 3 * mib}) // this block was alive before recording began
	r.f.births, r.workspaces = make([]birth, 3), make([]bool, 3)
	for alloc, want := range []string{"", "untraced/lifetime", "untraced/lifetime"} {
		u := r.about(alloc, nil)
		expect(t, untracedBlock, r, u, want)
	}
}

func TestRuleLibraryWorkspace(t *testing.T) {
	alloc := schemas.ActionAlloc
	r := forwardRules(0, []schemas.Action{alloc, alloc, alloc, alloc}, []int64{32 * mib, 32 * mib, 32 * mib, 3 * mib})
	// The first allocation has an owner. The second is the workspace of its thread, so the third is no workspace.
	for alloc, want := range []string{"", "workspace/lifetime", "", ""} {
		u := r.about(alloc, nil)
		u.whole = true
		expect(t, libraryWorkspace, r, u, want)
	}
	u := r.about(1, nil) // another part of the block's life has an owner
	expect(t, libraryWorkspace, r, u, "")
}

func TestRuleCastOfWeight(t *testing.T) {
	alloc := schemas.ActionAlloc
	r := forwardRules(-1, []schemas.Action{alloc, alloc, alloc, alloc, alloc}, make([]int64, 5))
	// The first allocation is freed while autocast frees its cached casts, and the second afterwards.
	r.f.device.Events.Mark[3] = 1
	r.f.context.dropping = map[uint32]bool{1: true}
	r.f.allocs[0].FreeRequestedSeq, r.f.allocs[1].FreeRequestedSeq = 4, 5
	for alloc, want := range []string{"autocast_cache/lifetime", "", ""} {
		u := r.about(alloc, nil)
		expect(t, castOfWeight, r, u, want)
	}
}

func TestRuleBornInDPCode(t *testing.T) {
	hook := func(u *unowned) { u.birth.dp = true }
	expect(t, bornInDPCode, nil, made(backwardFamily, hook), "clip_temporaries/phase")
	expect(t, bornInDPCode, nil, made(backwardFamily, hook, inside), "clip_temporaries/lifetime")
	expect(t, bornInDPCode, nil, made(clipFamily, inside), "clip_temporaries/lifetime")
	expect(t, bornInDPCode, nil, made(backwardFamily, inside), "")
}

func TestRuleLossTarget(t *testing.T) {
	expect(t, lossTarget, nil, made(otherFamily, func(u *unowned) { u.lossTarget = true }), "inputs/lifetime")
	expect(t, lossTarget, nil, made(otherFamily), "")

	names := map[uint32]string{1: "MseLossBackward0", 2: "MulBackward0"}
	r := &rules{calls: true, f: &facts{context: &Context{rank: &Rank{Names: names}}}}
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

func TestRuleForwardTemporary(t *testing.T) {
	for _, in := range []family{forwardFamily, recomputeFamily, evalFamily} {
		expect(t, forwardTemporary, nil, made(in, inside), "forward_temporaries/lifetime")
		expect(t, forwardTemporary, nil, made(in), "")
	}
	expect(t, forwardTemporary, nil, made(backwardFamily, inside), "")
}

func TestRuleKeptOutput(t *testing.T) {
	given := func(u *unowned) { u.output, u.begin = true, 60 }
	for _, in := range []family{forwardFamily, evalFamily, otherFamily} {
		expect(t, keptOutput, nil, made(in, given), "script/lifetime")
	}
	expect(t, keptOutput, nil, made(evalFamily, func(u *unowned) { u.begin = 60 }), "")
	// before the model returned the block
	expect(t, keptOutput, nil, made(evalFamily, func(u *unowned) { u.output = true }), "")
}

func TestRuleActivation(t *testing.T) {
	f := &facts{context: &Context{rank: &Rank{Steps: &steps.Result{Spans: []steps.Span{{}}}}},
		allocs: []replay.Alloc{{AllocSeq: 10, FreeRequestedSeq: 90}}, births: []birth{{}}}
	r := &rules{f: f, phaseEnd: []int64{50}, events: 100, graphs: &graphs{f: f, releases: []release{{seq: 80}}}}
	freed := func(u *unowned) { u.Alloc.FreeRequestedSeq, u.end = 90, 90 }
	for _, in := range []family{forwardFamily, recomputeFamily} {
		if v := expect(t, activation, r, made(in, freed), "activations/lifetime"); v.until != 80 {
			t.Errorf("the graph is given up at 80, not at %d", v.until)
		}
		expect(t, activation, r, made(in, inside), "")
	}
	// The block outlived the graph, so autograd held the block before and has released it.
	expect(t, activation, r, made(forwardFamily, func(u *unowned) { u.begin = 60 }), "script/phase")
	expect(t, activation, r, made(evalFamily), "")
	r.phaseEnd[0] = 100 // the recording ends in forward
	expect(t, activation, r, made(forwardFamily), "activations/phase")
	expect(t, activation, r, made(recomputeFamily), "activations/lifetime")
}

func TestRuleBornInBackward(t *testing.T) {
	plain, private := &rules{}, &rules{private: true}
	expect(t, bornInBackward, plain, made(backwardFamily, inside), "activation_gradients/lifetime")
	expect(t, bornInBackward, plain, made(backwardFamily), "activation_gradients/phase")
	expect(t, bornInBackward, plain, made(backwardFamily, inside, unmatched), "activation_gradients/lifetime")
	expect(t, bornInBackward, private, made(backwardFamily, inside, unmatched), "activation_gradients/phase")
	expect(t, bornInBackward, private, made(backwardFamily, inside), "activation_gradients/lifetime")
	expect(t, bornInBackward, plain, made(backwardFamily, unmatched), "other/phase")
	expect(t, bornInBackward, plain, made(forwardFamily, inside), "")
}

func TestRuleBornInUpdate(t *testing.T) {
	r := &rules{stepEnd: []int64{20, 40, 60}}
	in := func(step, free int64) func(*unowned) {
		return func(u *unowned) { u.span.Step, u.Alloc.FreeRequestedSeq = step, free }
	}
	expect(t, bornInUpdate, r, made(updateFamily, inside, in(1, 12)), "optimizer_temporaries/lifetime")
	expect(t, bornInUpdate, r, made(updateFamily, in(0, 0)), "optimizer_state/lifetime")
	expect(t, bornInUpdate, r, made(updateFamily, in(1, 61)), "optimizer_state/lifetime")
	expect(t, bornInUpdate, r, made(updateFamily, in(1, 60)), "optimizer_temporaries/phase")
	// This is the last step, so the recording does not show whether the block would outlive a further step.
	expect(t, bornInUpdate, r, made(updateFamily, in(2, 0)), "optimizer_temporaries/phase")
	expect(t, bornInUpdate, r, made(forwardFamily, inside), "")
	r.private = true
	expect(t, bornInUpdate, r, made(updateFamily, inside, in(1, 12), unmatched), "optimizer_temporaries/phase")
	expect(t, bornInUpdate, r, made(updateFamily, in(0, 0), unmatched), "optimizer_state/phase")
}

func TestRuleBornInSetup(t *testing.T) {
	for in, want := range map[family]string{setupDataFamily: "inputs/phase", setupModelFamily: "parameters/phase",
		setupOptimizerFamily: "optimizer_state/phase", otherFamily: ""} {
		expect(t, bornInSetup, nil, made(in), want)
		expect(t, bornInSetup, nil, made(in, inside), "")
	}
}

func TestRuleBornInScript(t *testing.T) {
	context := &Context{rank: &Rank{Steps: &steps.Result{Steps: []steps.Step{{}, {Unphased: true}}}}}
	r := &rules{f: &facts{context: context}, marked: true}
	in := func(step int64) func(*unowned) { return func(u *unowned) { u.span = &steps.Span{Step: step} } }
	expect(t, bornInScript, r, made(otherFamily, in(0), inside), "script/lifetime")
	expect(t, bornInScript, r, made(otherFamily, in(-1)), "script/phase")
	expect(t, bornInScript, r, made(evalFamily, in(0)), "")
	for _, step := range []int64{1, 2} { // the agent did not mark the passes of these steps
		expect(t, bornInScript, r, made(otherFamily, in(step)), "")
	}
	r.marked = false
	expect(t, bornInScript, r, made(otherFamily, in(0)), "")
}

func TestRuleAnythingElse(t *testing.T) {
	expect(t, anythingElse, nil, made(otherFamily), "other/phase")
	expect(t, anythingElse, nil, made(evalFamily), "other/phase")
}
