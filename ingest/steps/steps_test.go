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
		phases      string // the test does not check phases if this is empty
	}{
		{
			name:  "plain",
			marks: "zero_grad forward backward update:0 zero_grad forward backward update:0 exit",
			steps: 2, rule: RuleOptimizer,
			phases: "between / zero_grad between forward backward between optimizer / between zero_grad " +
				"between forward backward between optimizer / between",
		},
		{
			name:  "no zero_grad, process goes on",
			marks: "forward backward update:0 forward backward update:0 forward/no_grad/eval exit",
			steps: 2, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between forward backward between " +
				"optimizer / between eval between",
		},
		{
			name:  "zero_grad survives in forward",
			marks: "forward zero_grad backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward zero_grad forward backward between optimizer / between",
		},
		{
			name:  "state made before training",
			marks: "update:0 forward backward update:0 zero_grad forward backward update:0",
			steps: 2, rule: RuleOptimizer,
			phases: "between setup.optimizer between / forward backward between optimizer / between zero_grad between " +
				"forward backward between optimizer / between",
		},
		{
			name:  "state of two optimizers made before training",
			marks: "update:0 update:1 forward backward update:0 update:1 forward backward update:0 update:1",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name: "state made by torch in the middle",
			marks: "forward backward update:0 forward backward update:0 update:1/initializes zero_grad forward " +
				"backward update:1 forward backward update:1",
			steps: 4, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between forward backward between optimizer / " +
				"between zero_grad between forward backward between optimizer / between forward backward between " +
				"optimizer / between",
		},
		{
			name:  "state made by torch alone",
			marks: "update:0/initializes forward/no_grad/eval",
			steps: 0, rule: "",
		},
		{
			name:  "gradients set by hand",
			marks: "update:0 update:0 forward/no_grad update:0",
			steps: 3, rule: RuleOptimizer,
		},
		{
			name:  "gradients set by hand, then a backward",
			marks: "update:0 update:0 forward backward update:0",
			steps: 3, rule: RuleOptimizer,
		},
		{
			name:  "one update by hand",
			marks: "update:0",
			steps: 1, rule: RuleOptimizer,
		},
		{
			name:  "backward inside the first update",
			marks: "update:0{ forward backward } update:0{ forward backward }",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name:  "the first update inside a scaler's step",
			marks: "scaler_step{ update:0 } forward backward scaler_step{ update:0 }",
			steps: 1, rule: RuleOptimizer,
		},
		{
			name: "accumulation",
			marks: "forward backward forward backward update:0 zero_grad forward backward forward backward " +
				"update:0 zero_grad",
			steps: 2, rule: RuleOptimizer,
			phases: "between / forward backward between forward1 backward1 between1 optimizer1 / between " +
				"zero_grad between forward backward between forward1 backward1 between1 optimizer1 / " +
				"between zero_grad between",
		},
		{
			name:  "the loss is a module",
			marks: "forward forward backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between",
		},
		{
			name:  "backward without a module",
			marks: "zero_grad backward update:0 zero_grad backward update:0",
			steps: 2, rule: RuleOptimizer,
			phases: "between / zero_grad between backward between optimizer / between zero_grad between " +
				"backward between optimizer / between",
		},
		{
			name: "GAN one to one",
			marks: "forward forward backward update:0 forward backward update:1 forward forward backward " +
				"update:0 forward backward update:1",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name: "GAN five to one",
			marks: "forward backward update:0 forward backward update:0 forward backward update:0 forward " +
				"backward update:1 forward backward update:0 forward backward update:0 forward backward " +
				"update:0 forward backward update:1 forward backward update:0",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name: "two optimizers, one after the other",
			marks: "forward backward update:0 forward backward update:0 forward backward update:1 forward " +
				"backward update:1",
			steps: 4, rule: RuleOptimizer,
		},
		{
			name:  "two optimizers, one backward",
			marks: "forward backward update:0 update:1 forward backward update:0 update:1",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name:  "two optimizers, one step",
			marks: "forward backward update:0 update:1",
			steps: 1, rule: RuleOptimizer,
		},
		{
			name:  "nested optimizer steps",
			marks: "forward backward update:0{ update:1 } forward backward update:0{ update:1 }",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name:  "closure",
			marks: "update:0{ zero_grad forward backward } update:0{ zero_grad forward backward }",
			steps: 2, rule: RuleOptimizer,
			phases: "between / optimizer zero_grad optimizer forward backward optimizer / between optimizer " +
				"zero_grad optimizer forward backward optimizer / between",
		},
		{
			name: "closure evaluated thrice",
			marks: "update:0{ zero_grad forward backward zero_grad forward backward zero_grad forward " +
				"backward }",
			steps: 1, rule: RuleOptimizer,
		},
		{
			name: "Opacus hooks",
			marks: "forward backward dp_step{ phase:clip{ } phase:accumulate{ } phase:noise{ } update:0 } " +
				"zero_grad",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer clip optimizer accumulate optimizer noise " +
				"optimizer / between zero_grad between",
		},
		{
			name: "Opacus functorch: the forward and backward inside backward are the sampler",
			marks: "forward backward{ forward/in_backward backward/nested/functorch forward/in_backward " +
				"backward/nested/functorch } dp_step{ update:0 } zero_grad",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between zero_grad between",
		},
		{
			name: "physical batches",
			marks: "forward backward dp_step zero_grad forward backward dp_step zero_grad forward backward " +
				"dp_step{ update:0 } zero_grad",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer between zero_grad between forward1 " +
				"backward1 between1 optimizer1 between1 zero_grad1 between1 forward2 backward2 between2 " +
				"optimizer2 / between zero_grad between",
		},
		{
			name: "ghost",
			marks: "forward two_pass{ forward backward/keep_graph zero_grad backward } dp_step{ update:0 } " +
				"zero_grad",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward.norm clip zero_grad clip backward.grad between optimizer / " +
				"between zero_grad between",
		},
		{
			name: "ghost, microbatches",
			marks: "forward two_pass{ backward/keep_graph zero_grad backward } dp_step zero_grad forward " +
				"two_pass{ backward/keep_graph zero_grad backward } dp_step{ update:0 } zero_grad",
			steps: 1, rule: RuleOptimizer,
		},
		{
			name:  "ghost without Opacus' loss",
			marks: "forward backward/keep_graph zero_grad backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward.norm clip zero_grad clip backward.grad between optimizer / " +
				"between",
		},
		{
			name:  "ghost by hand, its clip named",
			marks: "forward backward/keep_graph phase:scale{ } zero_grad backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward.norm clip scale clip zero_grad clip backward.grad between " +
				"optimizer / between",
		},
		{
			name:  "multi-task: a kept graph alone is no norm pass",
			marks: "forward backward/keep_graph backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between backward1 between1 optimizer1 / between",
		},
		{
			name:  "two losses, an update between",
			marks: "forward backward/keep_graph update:0 zero_grad backward update:1",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer between zero_grad between backward1 " +
				"between1 optimizer1 / between",
		},
		{
			name:  "gradient penalty",
			marks: "forward backward/create_graph/keep_graph/no_accumulate backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between",
		},
		{
			name: "MAML: functional inner steps",
			marks: "forward backward/create_graph/keep_graph/no_accumulate forward " +
				"backward/create_graph/keep_graph/no_accumulate forward backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between",
		},
		{
			name: "checkpoint",
			marks: "forward backward{ recompute{ forward/in_backward } recompute{ forward/in_backward } } " +
				"update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward recompute backward recompute backward between optimizer / " +
				"between",
		},
		{
			name:  "checkpoint, reentrant",
			marks: "forward backward{ recompute{ forward/in_backward } backward/nested } update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward recompute backward between optimizer / between",
		},
		{
			name: "checkpoint on the engine's thread",
			marks: "forward backward{ thread1:engine thread1:recompute{ thread1:forward/in_backward " +
				"thread1:} thread1:recompute{ thread1:} } update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward recompute backward recompute backward between optimizer / " +
				"between",
		},
		{
			name:  "optimizer in backward",
			marks: "forward backward{ update:0 update:1 } forward backward{ update:0 update:1 }",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name: "optimizer in backward, on the engine's thread",
			marks: "forward backward{ thread1:engine thread1:update:0 thread1:update:1 } forward backward{ " +
				"thread1:engine thread1:update:0 thread1:update:1 }",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name: "scaler",
			marks: "forward backward scaler_step{ update:0 } scaler_update forward backward scaler_step{ " +
				"update:0 } scaler_update",
			steps: 2, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between optimizer between forward " +
				"backward between optimizer / between optimizer between",
		},
		{
			name: "scaler skips for an inf",
			marks: "forward backward scaler_step{ } scaler_update forward backward scaler_step{ update:0 } " +
				"scaler_update",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name:  "compiled function",
			marks: "compiled update:0 compiled update:0",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name:  "compiled step",
			marks: "forward backward compiled{ update:0 } forward backward compiled{ update:0 }",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name:  "whole compiled step",
			marks: "compiled{ backward } compiled{ backward }",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name:  "compiled eval",
			marks: "forward backward update:0 compiled/no_grad",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between eval between",
		},
		{
			name:  "only backward",
			marks: "forward backward forward backward forward backward",
			steps: 3, rule: RuleBackward,
			phases: "between / forward backward / between forward backward / between forward backward / " +
				"between",
		},
		{
			name: "only two-pass backward",
			marks: "forward two_pass{ backward/keep_graph backward } forward two_pass{ backward/keep_graph " +
				"backward }",
			steps: 2, rule: RuleBackward,
		},
		{
			name:  "norms only",
			marks: "forward backward/keep_graph forward backward/keep_graph",
			steps: 2, rule: RuleBackward,
		},
		{
			name:   "inference",
			marks:  "forward/no_grad/eval forward/no_grad/eval forward/no_grad/eval exit",
			steps:  0,
			phases: "between eval between eval between eval between",
		},
		{
			name: "evaluation between",
			marks: "forward backward update:0 forward/no_grad/eval forward/no_grad/eval forward backward " +
				"update:0",
			steps: 2, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between eval between eval between " +
				"forward backward between optimizer / between",
		},
		{
			name:  "evaluation with gradients on",
			marks: "forward backward update:0 forward/eval forward backward update:0",
			steps: 2, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between eval between forward backward " +
				"between optimizer / between",
		},
		{
			name: "frozen teacher inside forward",
			marks: "forward/no_grad/eval forward backward update:0 forward/no_grad/eval forward " +
				"forward/no_grad/eval backward update:0",
			steps: 2, rule: RuleOptimizer,
			phases: "between eval between / forward backward between optimizer / between eval between " +
				"forward eval forward backward between optimizer / between",
		},
		{
			name:  "fine-tuning in eval mode",
			marks: "forward/eval backward update:0 forward/eval backward update:0",
			steps: 2, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between forward backward between " +
				"optimizer / between",
		},
		{
			name:  "data transform that is a module",
			marks: "forward/detached forward backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between",
		},
		{
			name:  "sanity evaluation first",
			marks: "forward/no_grad/eval zero_grad forward backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between eval between / zero_grad between forward backward between optimizer / between",
		},
		{
			name:  "set-up",
			marks: "phase:setup.model{ } phase:setup.privacy{ } forward backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between setup.model between setup.privacy between / forward backward between optimizer " +
				"/ between",
		},
		{
			name: "set-up stages that the agent marks",
			marks: "stage:setup.model{ } zero_grad stage:setup.optimizer{ } forward/no_grad/eval forward " +
				"backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between setup.model between zero_grad between setup.optimizer between eval between / " +
				"forward backward between optimizer / between",
		},
		{
			name: "stages in training say nothing",
			marks: "stage:setup.model{ } forward stage:setup.model{ } backward stage:setup.model{ } update:0 " +
				"forward stage:setup.model{ } backward update:0",
			steps: 2, rule: RuleOptimizer,
			phases: "between setup.model between / forward backward between optimizer / between forward " +
				"backward between optimizer / between",
		},
		{
			name:  "a stage in forward in a phase of the script",
			marks: "phase:train{ forward stage:setup.model{ } backward update:0 }",
			steps: 1, rule: RuleOptimizer,
			phases: "between train / forward backward train optimizer / train between",
		},
		{
			name:  "a stage in training in a phase of the script",
			marks: "forward backward phase:mine{ stage:setup.model{ } } update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between mine between optimizer / between",
		},
		{
			name:  "phases of the script around all",
			marks: "phase:train{ zero_grad forward backward update:0 zero_grad forward backward update:0 }",
			steps: 2, rule: RuleOptimizer,
			phases: "between train / zero_grad train forward backward train optimizer / train zero_grad " +
				"train forward backward train optimizer / train between",
		},
		{
			name:  "phases of the script inside",
			marks: "forward phase:loss{ forward } backward update:0",
			steps: 1, rule: RuleOptimizer,
		},
		{
			name:  "a phase in forward, no module",
			marks: "forward phase:loss{ } backward update:0",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward loss forward backward between optimizer / between",
		},
		{
			name:  "forward and backward in phases of their own",
			marks: "phase:a{ forward } phase:b{ backward } phase:c{ update:0 }",
			steps: 1, rule: RuleOptimizer,
			phases: "between a / forward b backward b between c optimizer / c between",
		},
		{
			name: "dpsight.step() is the rule",
			marks: "forward backward update:0 forward backward update:0 user_step forward backward update:0 " +
				"forward backward update:0 user_step",
			steps: 2, rule: RuleUserStep,
		},
		{
			name:  "dpsight.step() before the first step ends none",
			marks: "user_step forward backward update:0 user_step forward backward update:0 user_step",
			steps: 2, rule: RuleUserStep,
		},
		{
			name:  "dpsight.step() for an optimizer that torch does not know",
			marks: "zero_grad forward backward user_step zero_grad forward backward user_step",
			steps: 2, rule: RuleUserStep,
		},
		{
			name: "threads of a loader",
			marks: "forward thread2:forward/no_grad/eval backward thread2:forward/no_grad/eval update:0 " +
				"thread2:forward/no_grad/eval forward backward update:0",
			steps: 2, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between forward backward between " +
				"optimizer / between",
		},
		{
			name:  "out of memory in forward",
			marks: "forward backward update:0 forward{ oom } exception",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between forward",
		},
		{
			name: "out of memory, caught, tried again",
			marks: "forward backward update:0 zero_grad forward/detached{ oom } zero_grad forward backward " +
				"update:0 exit",
			steps: 2, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between zero_grad between forward " +
				"zero_grad forward backward between optimizer / between",
		},
		{
			name:  "killed in forward",
			marks: "forward backward update:0 forward{",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between forward",
		},
		{
			name:  "killed in backward",
			marks: "forward backward update:0 forward backward{",
			steps: 1, rule: RuleOptimizer,
			phases: "between / forward backward between optimizer / between forward backward",
		},
		{
			name:   "killed in the first step",
			marks:  "zero_grad forward backward{",
			steps:  0,
			phases: "between / zero_grad between forward backward",
		},
		{
			name:  "dies in the loss",
			marks: "forward exception",
			steps: 0,
		},
		{
			name:  "a forward call never ended",
			marks: "forward{ zero_grad forward backward update:0 forward backward update:0",
			steps: 2, rule: RuleOptimizer,
		},
		{
			name:   "nothing",
			marks:  "",
			steps:  0,
			phases: "between",
		},
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

// check checks properties that the steps of any recording must have.
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
	marks, names := parse(t, `
		mode/instrumented/warmup/recording forward backward update:0
		drain mode/instrumented/recording forward backward update:0
		mode/recording drain forward backward update:0
		mode/instrumented/recording forward backward mode/recording forward backward update:0
		mode forward backward update:0
		forward backward update:0`)
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
	marks, names := parse(t, "forward backward update:0 drain forward backward update:0 user_step:4,8")
	r := Derive(marks, names)
	if r.Rule != RuleUserStep || len(r.Steps) != 1 {
		t.Fatalf("%+v", r)
	}
	s := r.Steps[0]
	lasted := s.EndNS - s.StartNS - s.DrainNS
	if s.DrainNS != drainNS-markNS || lasted != markNS*(int64(len(marks))-3) || s.Samples != 4 || s.Tokens != 8 {
		t.Errorf("%+v", s)
	}
	var in int64
	for _, p := range r.Spans {
		if p.Step == 0 {
			in += p.EndNS - p.StartNS
		}
	}
	if in != lasted {
		t.Errorf("phases last %d ns, the step %d without its drain", in, lasted)
	}
}

// For any marks, the spans cover the whole run, and the steps are in order.
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
	marks, names := parse(t, `
		forward backward update:0
		mode/unphased update:0
		updated:0
		mode forward backward update:0
		mode/unphased updated:0`)
	r := Derive(marks, names)
	const want = "between / forward backward between optimizer / between optimizer / between / " +
		"between forward backward between optimizer / between / between"
	if got := show(r); got != want {
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

// An optimizer's step that raised an exception updated nothing, so it does not end a training step.
func TestUpdatesThatRaised(t *testing.T) {
	const want = "between / forward backward between optimizer / " +
		"between forward backward between optimizer between forward1 backward1 between1 optimizer1 / between"
	for _, text := range []string{
		`forward backward update:0
			forward backward update:0/raised
			forward backward update:0`,
		`forward backward update:0
			forward backward dp_step{ update:0/raised }
			forward backward update:0`,
		`forward backward scaler_step{ update:0 }
			forward backward scaler_step{ update:0/raised }
			forward backward scaler_step{ update:0 }`,
	} {
		marks, names := parse(t, text)
		if got := show(Derive(marks, names)); got != want {
			t.Errorf("%s: phases %s, want %s", text, got, want)
		}
	}
}

// If an optimizer failed inside another optimizer or a scaler, older agents wrote no mark at the end of the failed
// update. The failed update must not count as a step.
func TestUpdatesThatFailedInside(t *testing.T) {
	for text, steps := range map[string]int{
		`forward backward update:1{ update:3 }
			forward backward update:1{ update:3 }
			forward backward update:1{ update:3 }`: 3,
		`forward backward update:1
			forward backward scaler_step{ update:3 }
			forward backward update:1`: 2,
	} {
		marks, names := parse(t, text)
		marks = slices.DeleteFunc(marks, func(m spool.Mark) bool { return m.Kind == spool.OptimizerEnd && m.A == 3 })
		if r := Derive(marks, names); len(r.Steps) != steps {
			t.Errorf("%s: %+v", text, r.Steps)
		}
	}
}

// A training step ends with a backward only in scripts without an optimizer. If all of a script's updates raised
// exceptions, the script has an optimizer, so no step ends with a backward.
func TestOnlyUpdatesThatRaised(t *testing.T) {
	marks, names := parse(t, "forward backward update:0/raised forward backward update:0/raised")
	if r := Derive(marks, names); len(r.Steps) != 0 {
		t.Errorf("%+v", r.Steps)
	}
}

// In a step without phases, the agent marks only the end of a backward run, and only if optimizers stepped inside the
// run. An optimizer's step around such a run is no second update.
func TestUpdatesInUnmarkedBackward(t *testing.T) {
	marks, names := parse(t, `
		forward backward update:1
		mode/unphased updated:1
		update:2/in_backward update:3/in_backward updated_in_backward:0
		mode forward backward{ update:2/in_backward update:3/in_backward }
		forward backward{ update:2/in_backward update:3/in_backward }`)
	if r := Derive(marks, names); len(r.Steps) != 5 {
		t.Errorf("%+v", r.Steps)
	}
	marks, names = parse(t, `
		forward backward update:1
		mode/unphased updated:1
		update:2/in_backward update:3/in_backward update:1{ updated_in_backward:0 }
		mode forward backward update:1
		forward backward update:1`)
	if r := Derive(marks, names); len(r.Steps) != 5 || r.Optimizers != 1 {
		t.Errorf("%d optimizers, %+v", r.Optimizers, r.Steps)
	}
}

// In a step without phases, the agent marks a forward if a request failed inside it. The agent does not mark the
// backward of such a step. The next step must have one forward-backward pair and not two.
func TestPairsBesideUnphasedSteps(t *testing.T) {
	marks, names := parse(t, `
		forward backward update:0
		mode/unphased forward{ oom } update:0
		mode forward backward update:0`)
	r := Derive(marks, names)
	if len(r.Steps) != 3 || r.Steps[1].Microbatches != 0 || r.Steps[2].Microbatches != 1 {
		t.Errorf("%+v", r.Steps)
	}
}

// If a request of a convolution fails, the error may be raised after the mark that ends the forward. The failure then
// still belongs to that forward.
func TestFailuresThatAreRaisedLate(t *testing.T) {
	marks, names := parse(t, "forward backward update:0 forward")
	end := len(marks) - 1
	oom := spool.Mark{Kind: spool.OOM, Flags: spool.FlagNoted}
	marks = append(marks[:end:end], oom, marks[end], spool.Mark{Kind: spool.Raised})
	for i := range marks {
		marks[i].K = uint32(i + 1)
	}
	marks[len(marks)-1].A = uint64(end + 1)
	const want = "between / forward backward between optimizer / between forward"
	if got := show(Derive(marks, names)); got != want {
		t.Errorf("phases %s, want %s", got, want)
	}
}
