package livetest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
)

// engineSays lists the agent's functions that a thread of torch's autograd engine calls once in a backward while the
// agent records events. With these calls the thread writes a mark.
var engineSays = []string{"hooks/backward.py:_mark_engine", "hooks/backward.py:_once", "hooks/backward.py:first",
	"hooks/backward.py:_arrives", "recorder/core.py:guard", "recorder/spans.py:arrives",
	"recorder/timing.py:engine_arrives", "recorder/core.py:mark"}

// remembering lists the agent's files that note the inputs and outputs of models.
var remembering = []string{"taggers/step_io.py", "taggers/models.py", "tags.py", "nodes.py", "tensors.py",
	"torch_compat.py"}

// A bare step of a recorded run calls the same functions of the agent as a step of a bare run, since published times
// come from both. In addition, a bare step of a recorded run remembers the model's inputs, so that the batch has a
// name if a request fails. That takes some twenty calls, however many modules and parameters the model has. While the
// agent records events, the engine's thread also adds one mark. In bare steps the engine does not call the hooks that
// instrumented steps set on parameters, since each call would take Python's interpreter lock.
func TestABareStepIsBareWhereStepsAreRecorded(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	calls := func(bare bool) map[string]int {
		// NoLines, since on a phantom GPU the agent also follows lines in bare steps, unlike on a real GPU.
		r := recordAs(t, environment(), func(e *collect.Experiment) { e.Bare, e.NoLines = bare, true }, python,
			script(t, "calls.py"))
		for i, line := range linesOf(t, r.stdout, "HOOKS ") {
			// hooks is: whether the step is instrumented, the number of parameters with hooks, the number of
			// parameters, and how often the script's own hook was called so far.
			var hooks []any
			if err := json.Unmarshal([]byte(line), &hooks); err != nil {
				t.Fatal(err)
			}
			want := 1.0 // the parameter that has the script's own hook
			if hooks[0] == true {
				want = hooks[2].(float64)
			}
			if hooks[1] != want || hooks[3] != float64(i+1) {
				t.Errorf("bare %t: step %d: instrumented, hooked, parameters, calls of the script's own hook: %v", bare,
					i, hooks)
			}
		}
		lines := linesOf(t, r.stdout, "CALLS ")
		lines = lines[len(lines)-2:] // in the first steps the agent sees the model for the first time
		if lines[0] != lines[1] {
			t.Errorf("bare %t: two bare steps differ:\n%s\n%s", bare, lines[0], lines[1])
		}
		var counts map[string]int
		if err := json.Unmarshal([]byte(lines[0]), &counts); err != nil {
			t.Fatal(err)
		}
		return counts
	}
	recorded, bare := calls(false), calls(true)
	if len(bare) < 10 {
		t.Errorf("a bare run's step calls %v", bare)
	}
	more := 0
	for name, n := range recorded {
		file, _, _ := strings.Cut(name, ":")
		switch extra := n - bare[name]; {
		case extra == 0:
		case extra == 1 && slices.Contains(engineSays, name):
		case extra > 0 && slices.Contains(remembering, file):
			more += extra
		default:
			t.Errorf("%s: %d calls, %d in a bare run", name, n, bare[name])
		}
	}
	for name, n := range bare {
		if recorded[name] == 0 {
			t.Errorf("%s: %d calls in a bare run only", name, n)
		}
	}
	if more == 0 || more > 30 {
		t.Errorf("%d calls more than in a bare run", more)
	}
}
