package livetest_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// inOneProcess has the figures of an experiment with a method, in a process that earlier experiments have used.
type inOneProcess struct {
	Method string `json:"method"`
	Before int64  `json:"before"` // bytes allocated when the experiment began
	Peak   int64  `json:"peak"`
}

// Experiments that share a process pollute each other. A model with Opacus's hooks lies in reference cycles. If a
// script drops such a model, nothing is freed until Python happens to collect garbage, and the next experiment's peak
// is higher by the model's bytes. If the script collects garbage itself, cuBLAS's workspaces still stay, which the
// next experiment would otherwise make itself. In separate processes these experiments begin with nothing allocated,
// and reach the same peaks in any order.
func TestOneProcessPollutes(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	python := testkit.Python(t)
	takeSlot(t)
	modules, err := filepath.Abs("../experiments")
	if err != nil {
		t.Fatal(err)
	}
	run := func(arguments ...string) []inOneProcess {
		r := record(t, environment("PYTHONPATH="+modules), append([]string{python, script(t, "one_process.py")},
			arguments...)...)
		var found []inOneProcess
		if err := json.Unmarshal([]byte(strings.TrimSpace(r.stdout)), &found); err != nil {
			t.Fatalf("%v: %s", err, r.stdout)
		}
		// The script's own counters equal the recorded ones.
		highest := int64(0)
		for _, f := range found {
			highest = max(highest, f.Peak)
		}
		if got := r.report.Devices[0].PeakAllocatedBytes; got != highest {
			t.Errorf("replayed peak %d, the script says %d", got, highest)
		}
		return found
	}
	alone := map[string]int64{}
	for _, m := range []string{"ghost", "vanilla", "ghost"} {
		got := run("drop", m)[0]
		if before, ok := alone[m]; ok && before != got.Peak || got.Before != 0 {
			t.Errorf("%s in a process of its own: found %d B, reached %d B, earlier %d B", m, got.Before, got.Peak,
				before)
		}
		alone[m] = got.Peak
	}
	dropped, collected := run("drop", "ghost", "vanilla")[1], run("collect", "ghost", "vanilla")[1]
	if dropped.Peak <= alone["vanilla"] || dropped.Before <= collected.Before {
		t.Errorf("after ghost, dropped: found %d B, reached %d B; alone %d B", dropped.Before, dropped.Peak,
			alone["vanilla"])
	}
	if collected.Peak != alone["vanilla"] {
		t.Errorf("after ghost, collected: reached %d B; alone %d B", collected.Peak, alone["vanilla"])
	}
	if over, left := dropped.Peak-alone["vanilla"], dropped.Before-collected.Before; over != left {
		t.Errorf("the peak is %d B higher, but %d B were left", over, left)
	}
}
