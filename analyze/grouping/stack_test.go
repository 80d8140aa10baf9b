package grouping

import (
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

func TestStackText(t *testing.T) {
	frames := []schemas.StackFrame{
		{Function: "__torch_function__", File: "/env/lib/python3.12/site-packages/torch/utils/_device.py", Line: 103},
		{Function: "linear", File: "/env/lib/python3.12/site-packages/torch/nn/functional.py", Line: 12},
		{Function: "_call_impl", File: "/env/lib/python3.12/site-packages/torch/nn/modules/module.py", Line: 9},
		{Function: "bracketed", File: "/tmp/dpsight-2201/python/dpsight/patch.py", Line: 76},
		{Function: "inside", File: "/tmp/dpsight-2201/python/dpsight/hooks/forward.py", Line: 60},
		{Function: "apply", File: "/tmp/dpsight-2201/phantom_init.py", Line: 220},
		{Function: "exec_module", File: "/tmp/dpsight-2201/python/sitecustomize.py", Line: 56},
		{Function: "forward", File: "/home/a/project/model.py", Line: 3},
		{Function: "main", File: "/home/a/project/dpsight/train.py", Line: 40},
		{Function: "<module>", File: "/home/a/project/train.py", Line: 50},
		{Function: "apply", File: "/home/a/project/phantom_init.py", Line: 1},
		{Function: "call", File: "/home/a/python/dpsight/forward.py", Line: 2},
		{Function: "train", File: "/tmp/dpsight-2201/experiments/dpsight_experiments/train.py", Line: 3},
	}
	for _, c := range []struct {
		depth int
		lines bool
		want  string
	}{
		{0, true, "linear nn/functional.py:12 < forward project/model.py:3 < main dpsight/train.py:40"},
		{1, true, "linear nn/functional.py:12"},
		{0, false, "linear torch/nn/functional.py < forward model.py < main train.py"},
		{9, false, "linear torch/nn/functional.py < forward model.py < main train.py < <module> train.py < apply " +
			"phantom_init.py < call forward.py < train train.py"},
	} {
		if got := StackText(frames, c.depth, c.lines); got != c.want {
			t.Errorf("depth %d, lines %v: %q, want %q", c.depth, c.lines, got, c.want)
		}
	}
	if got := StackText(nil, 0, true); got != "" {
		t.Errorf("no stack: %q", got)
	}
}
