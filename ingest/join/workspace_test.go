package join

import (
	"testing"

	"github.com/dpsight/dpsight/schemas/spool"
)

// captured simulates two warm-up steps and a step that a CUDA graph captures on a separate stream. Each step has a
// matrix product in forward and one in backward. In the captured step's forward, the functions before and after run
// just before and just after the matrix product.
func captured(t *testing.T, before, after func(*world)) (*world, *Result) {
	w := newWorld(t)
	w.alloc(main, "weights", 3*mib)
	for step := range 3 {
		w.stream = 7
		if step == 2 {
			w.stream = 9
			w.free = nil // the capture allocates from a private pool
		}
		w.forward(func() {
			w.mark(main, spool.ModuleBegin, 0, 5)
			if step == 2 {
				before(w)
			}
			w.alloc(main, "product", 24*mib)
			if step != 1 {
				w.alloc(main, "cublas", 32*mib)
				w.alloc(main, "cublaslt", mib)
			}
			if step == 2 {
				after(w)
			}
			w.mark(main, spool.ModuleEnd, 0, 5)
		})
		w.backward(0, func() {
			w.alloc(engine, "gradient", 16*mib)
			if step != 1 {
				w.alloc(engine, "engine's", 32*mib)
			}
			w.drop(engine, "product", "gradient")
		})
		w.update()
		w.label([]string{"first", "second", "captured"}[step])
		if step == 1 { // a world keeps only one live block of each name
			for _, name := range []string{"cublas", "cublaslt", "engine's"} {
				w.live["first "+name] = w.live[name]
				delete(w.live, name)
			}
		}
	}
	return w, w.join()
}

// The stream on which a CUDA graph is captured has its own workspaces, in the one step that is captured.
func TestWorkspacesOfACapture(t *testing.T) {
	w, j := captured(t, func(*world) {}, func(*world) {})
	for life := range 2 {
		w.expect(j, []expectation{
			{"cublas", life, "captured", "workspace/lifetime"}, {"cublaslt", life, "captured", "workspace/lifetime"},
			{"engine's", life, "captured", "workspace/lifetime"},
		})
	}
}

// A tensor that a script keeps is no workspace, even if it has the size of a workspace. The script may allocate it
// before or after the matrix product.
func TestKeptTensorIsNoWorkspace(t *testing.T) {
	plant := func(names ...string) func(*world) {
		return func(w *world) {
			for i, name := range names {
				w.alloc(main, name, []int64{32 * mib, mib}[i])
			}
		}
	}
	none := func(*world) {}
	for name, c := range map[string][2]func(*world){"before": {plant("kept"), none}, "after": {none, plant("kept")},
		"two":  {none, plant("kept", "small")},
		"like": {func(w *world) { w.alloc(main, "like the product", 24*mib); w.alloc(main, "kept", 32*mib) }, none}} {
		w, j := captured(t, c[0], c[1])
		for planted := range w.blocks {
			if planted == "kept" || planted == "small" {
				if got := w.category(j, planted, 0, "captured"); got != "script/phase" {
					t.Errorf("%s: %s is %s", name, planted, got)
				}
			}
		}
		w.expect(j, []expectation{{"cublas", 0, "captured", "workspace/lifetime"}, {"engine's", 1, "captured",
			"workspace/lifetime"}})
	}
}

// In the first step, several blocks may have the size of a workspace and stay. Only one of them for each thread and
// stream counts as a workspace.
func TestOneWorkspaceOfAThreadAndStream(t *testing.T) {
	w := newWorld(t)
	for step := range 2 {
		w.forward(func() {
			w.alloc(main, "h", 3*mib)
			if step == 0 {
				w.alloc(main, "workspace", 32*mib)
				w.alloc(main, "kept", 32*mib)
			}
		})
		w.backward(0, func() { w.alloc(engine, "gradient", kib); w.drop(engine, "h", "gradient") })
		w.update()
		w.label("end")
	}
	w.expect(w.join(), []expectation{{"workspace", 0, "end", "workspace/lifetime"}, {"kept", 0, "end", "script/phase"}})
}
