package phantom

import (
	"context"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/testkit"
)

// The phantom GPU defers the drawing of a script's random initial values on the host. However the script reads such
// values, it reads the same as if they were drawn at once. Values that the script does not read take no memory.
func TestInitialValues(t *testing.T) {
	library, module := withModule(t)
	type result struct {
		Found                     map[string]any
		Deferred, Made, All, Kept int
		HighMiB                   int `json:"high_mib"`
	}
	var eager, put result
	runScript(t, library, &eager, "initial.py", []string{"PHANTOM_INIT=eager"}, module)
	if said := runScript(t, library, &put, "initial.py", nil, module); strings.Contains(said, "phantom:") {
		t.Errorf("it says: %s", said)
	}
	if len(eager.Found) < 50 {
		t.Errorf("only %d reads", len(eager.Found))
	}
	for name, want := range eager.Found {
		if got := put.Found[name]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, drawn at once %v", name, got, want)
		}
	}
	// initial.py never reads 8 weights, their 8 casts and 5 batches. The unread tensors include 512 MiB of weights, for
	// which no memory is used.
	const unread = 8 + 8 + 5
	if eager.All != 0 || put.Deferred != unread || put.Made != 0 || put.All < unread+30 {
		t.Errorf("eagerly %d were deferred; else %d, of the last %d %d, and %d of them made", eager.All, put.All,
			unread, put.Deferred, put.Made)
	}
	if put.Kept > 2*unread {
		t.Errorf("%d recipes are kept", put.Kept)
	}
	if put.HighMiB > eager.HighMiB-300 {
		t.Errorf("%d MiB at its highest, drawn at once %d", put.HighMiB, eager.HighMiB)
	}
}

// If a script makes a segmentation fault of its own, it ends as it would without the phantom GPU's fault handler for
// deferred values.
func TestFaultsOfItsOwn(t *testing.T) {
	testkit.Rest(t)
	library, module := withModule(t)
	const crash = `
import sys; sys.path.insert(0, sys.argv[1])
import ctypes, faulthandler, torch, phantom_init
phantom_init.install(torch)
own = torch.ones(1 << 20)
torch.randn(1 << 20)
if sys.argv[2] == "handler": faulthandler.enable()
if sys.argv[3] == "mapped":
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(own.data_ptr()), ctypes.c_size_t(4096), 0) == 0
    own.sum()
if sys.argv[3] == "deep": faulthandler._stack_overflow()
ctypes.string_at(16)
`
	faults := [][2]string{{"handler", "none"}, {"none", "mapped"}}
	if testkit.WithRest() {
		faults = append(faults,
			[][2]string{{"none", "none"}, {"none", "deep"}, {"handler", "deep"}, {"handler", "mapped"}}...)
	}
	for _, fault := range faults {
		handler := fault[0]
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		command := exec.CommandContext(ctx, library.Python, "-c", crash, module, handler, fault[1])
		command.Env = library.Env(nil)
		output, err := command.CombinedOutput()
		cancel()
		if err == nil || err.Error() != "signal: segmentation fault" &&
			err.Error() != "signal: segmentation fault (core dumped)" {
			t.Errorf("%s: %v\n%s", fault, err, output)
		}
		said := strings.Contains(string(output), "Fatal Python error: Segmentation fault")
		if said != (handler == "handler") {
			t.Errorf("%s: %s", fault, output)
		}
	}
}

// Several threads of a script may use tensors whose values are deferred. No thread crashes or waits for ever.
func TestInitialValuesOfThreads(t *testing.T) {
	testkit.Rest(t)
	library, module := withModule(t)
	for _, test := range [][2]string{
		{"freed", "((2, 1), True)"},
		{"forked", "0"},
		{"read", "((2, 1), True)"},
		{"raised", "True"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		command := exec.CommandContext(ctx, library.Python, filepath.Join("testdata", "recipes.py"), module, test[0])
		command.Env = library.Env(nil)
		output, err := command.CombinedOutput()
		cancel()
		if said := strings.TrimSpace(string(output)); err != nil || said != test[1] {
			t.Errorf("%s: %v, it says %s, want %s", test[0], err, said, test[1])
		}
	}
}
