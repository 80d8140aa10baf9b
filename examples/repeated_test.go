package examples_test

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
)

// Two suites were recorded twice, on two H200s, a day apart and by two versions of the agent: every figure in bytes, by category and by phase
// too, is the same. Times are another host's, and not compared.
func TestRecordedTwice(t *testing.T) {
	for _, s := range []string{"headline-batch", "quick"} {
		again, err := schemas.ReadBaseline(filepath.Join("repeated", s+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var runs []analyze.Summary
		for e := range runsOf(t, s) {
			runs = append(runs, analyze.Summarize(e.in))
		}
		first := map[string]schemas.BaselineExperiment{}
		for _, x := range analyze.BaselineOf(runs, "").Experiments {
			first[*x.Key] = x
		}
		if len(again.Experiments) != len(first) {
			t.Errorf("%s: %d experiments were recorded twice, of %d", s, len(again.Experiments), len(first))
		}
		for _, x := range again.Experiments {
			if got, want := bytesOf(x), bytesOf(first[*x.Key]); x.PeakBytes == nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s/%s: %+v, and in the store %+v", s, x.Name, got, want)
			}
		}
	}
}

// bytesOf is an experiment without its times and versions.
func bytesOf(x schemas.BaselineExperiment) schemas.BaselineExperiment {
	return schemas.BaselineExperiment{Key: x.Key, Name: x.Name, Status: x.Status, Runs: x.Runs, PeakBytes: x.PeakBytes, PeakReservedBytes: x.PeakReservedBytes,
		PeakDeviceBytes: x.PeakDeviceBytes, Allocations: x.Allocations, Categories: x.Categories, PhasePeaks: x.PhasePeaks}
}

// All presets in both precisions were recorded, by counters alone. The phantom GPU predicts them to the byte, what is reserved too.
func TestPhantomPredictsPresets(t *testing.T) {
	want, err := schemas.ReadBaseline(filepath.Join("accuracy", "recorded-presets.json"))
	if err != nil {
		t.Fatal(err)
	}
	predicted, err := schemas.ReadBaseline(filepath.Join("accuracy", "predicted-presets.json"))
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]schemas.BaselineExperiment{}
	for _, x := range predicted.Experiments {
		kept[*x.Key] = x
	}
	plan := planOf(t, filepath.Join("suites", "presets.yaml"))
	python := os.Getenv("DPSIGHT_TEST_PYTHON")
	fresh := python != "" && os.Getenv("DPSIGHT_TEST_LONG") != ""
	var machine *collect.Machine
	if fresh {
		install, err := collect.Probe(t.Context(), python, os.Environ())
		if err != nil {
			t.Fatal(err)
		}
		fresh = strings.HasPrefix(install.Torch, recordedTorch)
		if machine, err = collect.OpenMachine("phantom"); err != nil {
			t.Fatal(err)
		}
		defer machine.Close()
	}
	found := 0
	for _, x := range plan.Experiments {
		for _, m := range want.Experiments {
			if *m.Key != x.Key {
				continue
			}
			found++
			p := kept[x.Key]
			if m.Source != schemas.Measured || p.Source != schemas.Predicted || p.PeakBytes == nil || *p.PeakBytes != *m.PeakBytes || *p.PeakReservedBytes != *m.PeakReservedBytes {
				t.Errorf("%s: predicted %+v, recorded %+v", x.Name, bytesOf(p), bytesOf(m))
			}
			if !fresh {
				continue
			}
			r, err := collect.Run(t.Context(), collect.Experiment{Name: x.Name, Params: x.Params, Python: python, Machine: machine, Bare: true,
				Store: t.TempDir(), Stdout: io.Discard, Stderr: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			report, err := ingest.Run(r.Dir, ingest.Options{Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			d := report.Devices[0]
			if d.TorchPeakAllocatedBytes == nil || *d.TorchPeakAllocatedBytes != *m.PeakBytes || d.TorchPeakReservedBytes == nil || *d.TorchPeakReservedBytes != *m.PeakReservedBytes {
				t.Errorf("%s: predicted anew %+v, recorded %d allocated and %d reserved", x.Name, d, *m.PeakBytes, *m.PeakReservedBytes)
			}
		}
	}
	if found != len(plan.Experiments) || found != len(want.Experiments) {
		t.Errorf("%d of the suite's %d experiments are recorded, of %d in the file", found, len(plan.Experiments), len(want.Experiments))
	}
}
