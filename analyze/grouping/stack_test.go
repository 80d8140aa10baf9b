package grouping

import (
	"slices"
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
		{Function: "apply", File: "/tmp/dpsight-run-2201/phantom_init.py", Line: 220},
		{Function: "inside", File: "/tmp/dpsight-run-2201/python/dpsight/hooks/forward.py", Line: 60},
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
		{0, true, "forward project/model.py:3 < main dpsight/train.py:40 < <module> project/train.py:50"},
		{1, true, "forward project/model.py:3"},
		{0, false, "forward model.py < main train.py < <module> train.py"},
		{9, false, "forward model.py < main train.py < <module> train.py < apply phantom_init.py < call forward.py < " +
			"train train.py"},
	} {
		if got := StackText(frames, c.depth, c.lines); got != c.want {
			t.Errorf("depth %d, lines %v: %q, want %q", c.depth, c.lines, got, c.want)
		}
	}
	if got := StackText(nil, 0, true); got != "" {
		t.Errorf("no stack: %q", got)
	}
	want := "__torch_function__ utils/_device.py:103 < linear nn/functional.py:12"
	if got := FullStackText(frames, 2); got != want {
		t.Errorf("whole stack: %q, want %q", got, want)
	}
}

// The text of a stack names a frame of the user's program. If a stack has no such frame, the text names torch's own
// Python frames, and without these C++ frames.
func TestStackTextWithoutProgram(t *testing.T) {
	native := []schemas.StackFrame{
		{Function: "torch::CapturedTraceback::gather(bool, bool, bool)", File: "??", Line: 0},
		{Function: "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc(void**)", File: "??"},
		{Function: "at::native::empty_cuda(c10::ArrayRef<long>)", File: "EmptyTensor.cpp", Line: 12},
	}
	backward := []schemas.StackFrame{
		{Function: "_engine_run_backward", File: "/env/site-packages/torch/autograd/graph.py", Line: 824},
	}
	script := []schemas.StackFrame{{Function: "<module>", File: "<ipython-input-3-ab>", Line: 7}}
	for _, c := range []struct {
		frames []schemas.StackFrame
		want   string
	}{
		{native, "at::native::empty_cuda(c10::ArrayRef<long>) EmptyTensor.cpp:12"},
		{slices.Concat(native, backward), "_engine_run_backward autograd/graph.py:824"},
		{slices.Concat(native, backward, script), "<module> <ipython-input-3-ab>:7"},
	} {
		if got := StackText(c.frames, 0, true); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
