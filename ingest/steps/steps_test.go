package steps

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas/spool"
)

func TestDerive(t *testing.T) {
	cases := []struct {
		name, marks string
		steps       int
		rule        string
		phases      string // not checked if empty
	}{
		{"plain", "Z F B O0 Z F B O0 EXIT", 2, RuleOptimizer, ". / zg . fwd bwd . opt / . zg . fwd bwd . opt / ."},
		{"no zero_grad, process goes on", "F B O0 F B O0 F~e EXIT", 2, RuleOptimizer,
			". / fwd bwd . opt / . fwd bwd . opt / . eval ."},
		{"zero_grad survives in forward", "F Z B O0", 1, RuleOptimizer, ". / fwd zg fwd bwd . opt / ."},
		{"accumulation", "F B F B O0 Z F B F B O0 Z", 2, RuleOptimizer,
			". / fwd bwd . fwd1 bwd1 .1 opt1 / . zg . fwd bwd . fwd1 bwd1 .1 opt1 / . zg ."},
		{"the loss is a module", "F F B O0", 1, RuleOptimizer, ". / fwd bwd . opt / ."},
		{"backward without a module", "Z B O0 Z B O0", 2, RuleOptimizer, ". / zg . bwd . opt / . zg . bwd . opt / ."},
		{"GAN one to one", "F F B O0 F B O1 F F B O0 F B O1", 2, RuleOptimizer, ""},
		{"GAN five to one", "F B O0 F B O0 F B O0 F B O1 F B O0 F B O0 F B O0 F B O1 F B O0", 2, RuleOptimizer, ""},
		{"two optimizers, one after the other", "F B O0 F B O0 F B O1 F B O1", 4, RuleOptimizer, ""},
		{"two optimizers, one backward", "F B O0 O1 F B O0 O1", 2, RuleOptimizer, ""},
		{"two optimizers, one step", "F B O0 O1", 1, RuleOptimizer, ""},
		{"nested optimizer steps", "F B O0< O1 > F B O0< O1 >", 2, RuleOptimizer, ""},
		{"closure", "O0< Z F B > O0< Z F B >", 2, RuleOptimizer, ". / opt zg opt fwd bwd opt / . opt zg opt fwd bwd " +
			"opt / ."},
		{"closure evaluated thrice", "O0< Z F B Z F B Z F B >", 1, RuleOptimizer, ""},
		{"Opacus hooks", "F B D( P:clip( ) P:accumulate( ) P:noise( ) O0 ) Z", 1, RuleOptimizer,
			". / fwd bwd . opt clip opt accumulate opt noise opt / . zg ."},
		{"Opacus functorch: F and B inside B are the sampler", "F B{ F^ BnT F^ BnT } D( O0 ) Z", 1, RuleOptimizer,
			". / fwd bwd . opt / . zg ."},
		{"physical batches", "F B D Z F B D Z F B D( O0 ) Z", 1, RuleOptimizer,
			". / fwd bwd . opt . zg . fwd1 bwd1 .1 opt1 .1 zg1 .1 fwd2 bwd2 .2 opt2 / . zg ."},
		{"ghost", "F X( F Bk Z B ) D( O0 ) Z", 1, RuleOptimizer,
			". / fwd bwd.norm clip zg clip bwd.grad . opt / . zg ."},
		{"ghost, microbatches", "F X( Bk Z B ) D Z F X( Bk Z B ) D( O0 ) Z", 1, RuleOptimizer, ""},
		{"ghost without Opacus' loss", "F Bk Z B O0", 1, RuleOptimizer, ". / fwd bwd.norm clip zg clip bwd.grad . " +
			"opt / ."},
		{"ghost by hand, its clip named", "F Bk P:scale( ) Z B O0", 1, RuleOptimizer,
			". / fwd bwd.norm clip scale clip zg clip bwd.grad . opt / ."},
		{"multi-task: a kept graph alone is no norm pass", "F Bk B O0", 1, RuleOptimizer,
			". / fwd bwd . bwd1 .1 opt1 / ."},
		{"two losses, an update between", "F Bk O0 Z B O1", 1, RuleOptimizer, ". / fwd bwd . opt . zg . bwd1 .1 " +
			"opt1 / ."},
		{"gradient penalty", "F BckG B O0", 1, RuleOptimizer, ". / fwd bwd . opt / ."},
		{"MAML: functional inner steps", "F BckG F BckG F B O0", 1, RuleOptimizer, ". / fwd bwd . opt / ."},
		{"checkpoint", "F B{ R( F^ ) R( F^ ) } O0", 1, RuleOptimizer, ". / fwd bwd recompute bwd recompute bwd . " +
			"opt / ."},
		{"checkpoint, reentrant", "F B{ R( F^ ) Bn } O0", 1, RuleOptimizer, ". / fwd bwd recompute bwd . opt / ."},
		{"checkpoint on the engine's thread", "F B{ t1:E t1:R( t1:F^ t1:) t1:R( t1:) } O0", 1, RuleOptimizer,
			". / fwd bwd recompute bwd recompute bwd . opt / ."},
		{"optimizer in backward", "F B{ O0 O1 } F B{ O0 O1 }", 2, RuleOptimizer, ""},
		{"optimizer in backward, on the engine's thread", "F B{ t1:E t1:O0 t1:O1 } F B{ t1:E t1:O0 t1:O1 }", 2,
			RuleOptimizer, ""},
		{"scaler", "F B U( O0 ) Uu F B U( O0 ) Uu", 2, RuleOptimizer, ". / fwd bwd . opt / . opt . fwd bwd . opt / . " +
			"opt ."},
		{"scaler skips for an inf", "F B U( ) Uu F B U( O0 ) Uu", 2, RuleOptimizer, ""},
		{"compiled function", "W O0 W O0", 2, RuleOptimizer, ""},
		{"compiled step", "F B W( O0 ) F B W( O0 )", 2, RuleOptimizer, ""},
		{"whole compiled step", "W( B ) W( B )", 2, RuleOptimizer, ""},
		{"compiled eval", "F B O0 W~", 1, RuleOptimizer, ". / fwd bwd . opt / . eval ."},
		{"only backward", "F B F B F B", 3, RuleBackward, ". / fwd bwd / . fwd bwd / . fwd bwd / ."},
		{"only two-pass backward", "F X( Bk B ) F X( Bk B )", 2, RuleBackward, ""},
		{"norms only", "F Bk F Bk", 2, RuleBackward, ""},
		{"inference", "F~e F~e F~e EXIT", 0, "", ". eval . eval . eval ."},
		{"evaluation between", "F B O0 F~e F~e F B O0", 2, RuleOptimizer, ". / fwd bwd . opt / . eval . eval . fwd " +
			"bwd . opt / ."},
		{"evaluation with gradients on", "F B O0 Fe F B O0", 2, RuleOptimizer, ". / fwd bwd . opt / . eval . fwd bwd " +
			". opt / ."},
		{"frozen teacher inside forward", "F~e F B O0 F~e F F~e B O0", 2, RuleOptimizer,
			". eval . / fwd bwd . opt / . eval . fwd eval fwd bwd . opt / ."},
		{"fine-tuning in eval mode", "Fe B O0 Fe B O0", 2, RuleOptimizer, ". / fwd bwd . opt / . fwd bwd . opt / ."},
		{"data transform that is a module", "F- F B O0", 1, RuleOptimizer, ". / fwd bwd . opt / ."},
		{"sanity evaluation first", "F~e Z F B O0", 1, RuleOptimizer, ". eval . / zg . fwd bwd . opt / ."},
		{"set-up", "P:setup.model( ) P:setup.privacy( ) F B O0", 1, RuleOptimizer, ". setup.model . setup.privacy . " +
			"/ fwd bwd . opt / ."},
		{"set-up stages that the agent marks", "Ps:setup.model( ) Z Ps:setup.optimizer( ) F~e F B O0", 1, RuleOptimizer,
			". setup.model . zg . setup.opt . eval . / fwd bwd . opt / ."},
		{"stages in training say nothing", "Ps:setup.model( ) F Ps:setup.model( ) B Ps:setup.model( ) O0 F " +
			"Ps:setup.model( ) B O0", 2, RuleOptimizer,
			". setup.model . / fwd bwd . opt / . fwd bwd . opt / ."},
		{"a stage in forward in a phase of the script", "P:train( F Ps:setup.model( ) B O0 )", 1, RuleOptimizer,
			". train / fwd bwd train opt / train ."},
		{"a stage in training in a phase of the script", "F B P:mine( Ps:setup.model( ) ) O0", 1, RuleOptimizer,
			". / fwd bwd . mine . opt / ."},
		{"phases of the script around all", "P:train( Z F B O0 Z F B O0 )", 2, RuleOptimizer,
			". train / zg train fwd bwd train opt / train zg train fwd bwd train opt / train ."},
		{"phases of the script inside", "F P:loss( F ) B O0", 1, RuleOptimizer, ""},
		{"a phase in forward, no module", "F P:loss( ) B O0", 1, RuleOptimizer, ". / fwd loss fwd bwd . opt / ."},
		{"forward and backward in phases of their own", "P:a( F ) P:b( B ) P:c( O0 )", 1, RuleOptimizer,
			". a / fwd b bwd b . c opt / c ."},
		{"dpsight.step() is the rule", "F B O0 F B O0 S F B O0 F B O0 S", 2, RuleUserStep, ""},
		{"dpsight.step() before the first step ends none", "S F B O0 S F B O0 S", 2, RuleUserStep, ""},
		{"dpsight.step() for an optimizer that torch does not know", "Z F B S Z F B S", 2, RuleUserStep, ""},
		{"threads of a loader", "F t2:F~e B t2:F~e O0 t2:F~e F B O0", 2, RuleOptimizer,
			". / fwd bwd . opt / . fwd bwd . opt / ."},
		{"out of memory in forward", "F B O0 F[ OOM ] EXC", 1, RuleOptimizer, ". / fwd bwd . opt / . fwd"},
		{"out of memory, caught, tried again", "F B O0 Z F-[ OOM ] Z F B O0 EXIT", 2, RuleOptimizer,
			". / fwd bwd . opt / . zg . fwd zg fwd bwd . opt / ."},
		{"killed in forward", "F B O0 F[", 1, RuleOptimizer, ". / fwd bwd . opt / . fwd"},
		{"killed in backward", "F B O0 F B{", 1, RuleOptimizer, ". / fwd bwd . opt / . fwd bwd"},
		{"killed in the first step", "Z F B{", 0, "", ". / zg . fwd bwd"},
		{"dies in the loss", "F EXC", 0, "", ""},
		{"a forward call never ended", "F[ Z F B O0 F B O0", 2, RuleOptimizer, ""},
		{"nothing", "", 0, "", "."},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			marks, names := parse(t, c.marks)
			r := Derive(marks, names)
			check(t, marks, r)
			if len(r.Steps) != c.steps || r.Rule != c.rule {
				t.Errorf("%d steps by %q, want %d by %q", len(r.Steps), r.Rule, c.steps, c.rule)
			}
			if got := show(r); c.phases != "" && got != c.phases {
				t.Errorf("phases\n got %s\nwant %s", got, c.phases)
			} else if c.phases == "" {
				t.Logf("phases %s", got)
			}
		})
	}
}

// check holds what every result must hold.
func check(t *testing.T, marks []spool.Mark, r *Result) {
	t.Helper()
	if len(r.Spans) == 0 || r.Spans[0].BeginK != 0 {
		t.Fatal("spans do not begin at 0")
	}
	for i, s := range r.Spans {
		if i > 0 && (s.BeginK != r.Spans[i-1].EndK || s.Step < r.Spans[i-1].Step || s.StartNS < r.Spans[i-1].EndNS) {
			t.Fatalf("span %d %+v after %+v", i, s, r.Spans[i-1])
		}
		if len(marks) > 0 && s.EndK <= s.BeginK || s.EndNS < s.StartNS || s.Phase == "" || s.Under == "" ||
			s.Step > int64(len(r.Steps)) {
			t.Fatalf("span %d: %+v", i, s)
		}
	}
	if n := len(marks); n > 0 && r.Spans[len(r.Spans)-1].EndK != marks[n-1].K+1 {
		t.Fatal("spans do not reach the last mark")
	}
	for i, s := range r.Steps {
		if s.Number != int64(i) || s.EndK <= s.BeginK || i > 0 && s.BeginK != r.Steps[i-1].EndK || s.EndNS < s.StartNS {
			t.Fatalf("step %d: %+v", i, s)
		}
	}
}

func TestModes(t *testing.T) {
	marks, names := parse(t, "M:iwr F B O0 | M:ir F B O0 M:r | F B O0 M:ir F B M:r F B O0 M: F B O0 F B O0")
	r := Derive(marks, names)
	want := []struct{ warmup, instrumented, recorded bool }{
		{true, true, true}, {false, true, true}, {false, false, true}, {false, true, true}, {false, false, false},
		{false, false, false}}
	if len(r.Steps) != len(want) {
		t.Fatalf("%d steps", len(r.Steps))
	}
	for i, s := range r.Steps {
		if s.Warmup != want[i].warmup || s.Instrumented != want[i].instrumented || s.Recorded != want[i].recorded {
			t.Errorf("step %d: %+v, want %+v", i, s, want[i])
		}
	}
	if r.Steps[3].Microbatches != 2 || r.Steps[0].Microbatches != 1 {
		t.Errorf("microbatches %d, %d", r.Steps[3].Microbatches, r.Steps[0].Microbatches)
	}
}

func TestTimes(t *testing.T) {
	marks, names := parse(t, "F B O0 | F B O0 S:4,8")
	r := Derive(marks, names)
	if r.Rule != RuleUserStep || len(r.Steps) != 1 {
		t.Fatalf("%+v", r)
	}
	s := r.Steps[0]
	if s.DrainNS != 990 || s.EndNS-s.StartNS-s.DrainNS != 10*(int64(len(marks))-3) || s.Samples != 4 || s.Tokens != 8 {
		t.Errorf("%+v", s)
	}
	var in int64
	for _, p := range r.Spans {
		if p.Step == 0 {
			in += p.EndNS - p.StartNS
		}
	}
	if in != s.EndNS-s.StartNS-s.DrainNS {
		t.Errorf("phases last %d ns, the step %d without its drain", in, s.EndNS-s.StartNS-s.DrainNS)
	}
}

// Whatever the marks, spans cover and steps are in order.
func TestAnyMarks(t *testing.T) {
	kinds := []spool.Kind{spool.StepEnd, spool.UserStep, spool.Mode, spool.Engine, spool.OOM, spool.Exception,
		spool.Exit, spool.Tags}
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var marks []spool.Mark
		k, now := uint32(0), int64(0)
		for range rnd.IntN(60) {
			k += 1 + uint32(rnd.IntN(20)/19)
			now += int64(rnd.IntN(5))
			kind := spool.Kind(1 + rnd.IntN(28))
			if rnd.IntN(10) == 0 {
				kind = kinds[rnd.IntN(len(kinds))]
			}
			if kind == spool.UserStep && seed%2 == 0 {
				kind = spool.Tags
			}
			marks = append(marks, spool.Mark{K: k, Thread: uint16(rnd.IntN(12) / 10), Kind: kind,
				Flags: uint8(rnd.IntN(256)), TimeNS: now, A: uint64(rnd.IntN(3))})
		}
		check(t, marks, Derive(marks, map[uint32]string{1: "clip", 2: "mine"}))
	}
}

func TestUnphasedSteps(t *testing.T) {
	marks, names := parse(t, "F B O0 M:u O0 V0 M: F B O0 M:u V0")
	r := Derive(marks, names)
	if got, want := show(r), ". / fwd bwd . opt / . opt / . / . fwd bwd . opt / . / ."; got != want {
		t.Errorf("phases %s, want %s", got, want)
	}
	if r.Optimizers != 1 || r.Rule != RuleOptimizer || len(r.Steps) != 5 {
		t.Fatalf("%d optimizers, rule %q, steps %+v", r.Optimizers, r.Rule, r.Steps)
	}
	for i, unphased := range []bool{false, true, true, false, true} {
		pairs := int32(1)
		if unphased {
			pairs = 0
		}
		if s := r.Steps[i]; s.Unphased != unphased || s.Microbatches != pairs {
			t.Errorf("step %d: %+v", i, s)
		}
	}
}

// An optimizer that raised has updated nothing, and no step ended with it.
func TestUpdatesThatRaised(t *testing.T) {
	for text, want := range map[string]string{
		"F B O0 F B O0! F B O0":                ". / fwd bwd . opt / . fwd bwd . opt . fwd1 bwd1 .1 opt1 / .",
		"F B O0 F B D( O0! ) F B O0":           ". / fwd bwd . opt / . fwd bwd . opt . fwd1 bwd1 .1 opt1 / .",
		"F B U( O0 ) F B U( O0! ) F B U( O0 )": ". / fwd bwd . opt / . fwd bwd . opt . fwd1 bwd1 .1 opt1 / .",
	} {
		marks, names := parse(t, text)
		if got := show(Derive(marks, names)); got != want {
			t.Errorf("%s: phases %s, want %s", text, got, want)
		}
	}
}

// Of an optimizer that failed inside another one, or inside a scaler, older agents marked no end where it was, and a
// repaired one too late.
func TestUpdatesThatFailedInside(t *testing.T) {
	for text, steps := range map[string]int{
		"F B O1< O3 > F B O1< O3 > F B O1< O3 >": 3,
		"F B O1 F B U( O3 ) F B O1":              2,
	} {
		marks, names := parse(t, text)
		marks = slices.DeleteFunc(marks, func(m spool.Mark) bool { return m.Kind == spool.OptimizerEnd && m.A == 3 })
		if r := Derive(marks, names); len(r.Steps) != steps {
			t.Errorf("%s: %+v", text, r.Steps)
		}
	}
	// Where all updates raised no step has ended: those of scripts without an optimizer end with backward.
	marks, names := parse(t, "F B O0! F B O0!")
	if r := Derive(marks, names); len(r.Steps) != 0 {
		t.Errorf("%+v", r.Steps)
	}
}

// Optimizers that begin to step in backward in a step without phases are told with its run, of which there is a mark at
// its end only. The update in which it may lie is no second one.
func TestUpdatesInUnmarkedBackward(t *testing.T) {
	marks, names := parse(t, "F B O1 M:u V1 O2^ O3^ V0^ M: F B{ O2^ O3^ } F B{ O2^ O3^ }")
	if r := Derive(marks, names); len(r.Steps) != 5 {
		t.Errorf("%+v", r.Steps)
	}
	marks, names = parse(t, "F B O1 M:u V1 O2^ O3^ O1< V0^ > M: F B O1 F B O1")
	if r := Derive(marks, names); len(r.Steps) != 5 || r.Optimizers != 1 {
		t.Errorf("%d optimizers, %+v", r.Optimizers, r.Steps)
	}
}

// A forward that a failure marked late, of a backward that was not, begins no pair of the next step.
func TestPairsBesideUnphasedSteps(t *testing.T) {
	marks, names := parse(t, "F B O0 M:u F[ OOM ] O0 M: F B O0")
	r := Derive(marks, names)
	if len(r.Steps) != 3 || r.Steps[1].Microbatches != 0 || r.Steps[2].Microbatches != 1 {
		t.Errorf("%+v", r.Steps)
	}
}

// A convolution's request is known to have failed when its error is raised, which may be after the mark that ends the
// pass it was in.
func TestFailuresThatAreRaisedLate(t *testing.T) {
	marks, names := parse(t, "F B O0 F")
	end := len(marks) - 1
	oom := spool.Mark{Kind: spool.OOM, Flags: spool.FlagNoted}
	marks = append(marks[:end:end], oom, marks[end], spool.Mark{Kind: spool.Raised})
	for i := range marks {
		marks[i].K = uint32(i + 1)
	}
	marks[len(marks)-1].A = uint64(end + 1)
	if got, want := show(Derive(marks, names)), ". / fwd bwd . opt / . fwd"; got != want {
		t.Errorf("phases %s, want %s", got, want)
	}
}
