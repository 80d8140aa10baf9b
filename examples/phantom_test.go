package examples_test

import (
	"context"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// recordedTorch is the version that the examples were recorded with: only it predicts them to the byte.
const recordedTorch = "2.11.0"

// The headline experiments on the phantom GPU give the peaks and the breakdowns of the recordings on the real one, to the
// byte. Under another torch they conserve.
func TestPhantomPredictsRecordings(t *testing.T) {
	python := os.Getenv("DPSIGHT_TEST_PYTHON")
	if python == "" {
		t.Skip("DPSIGHT_TEST_PYTHON is unset: it names a Python with a CUDA build of torch, and Opacus")
	}
	install, err := collect.Probe(context.Background(), python, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	same := strings.HasPrefix(install.Torch, recordedTorch)
	plan, err := suite.Load("headline")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := collect.OpenMachine("phantom")
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	full, _ := recorded(t)
	ran := 0
	for _, x := range plan.Experiments {
		if x.Bare {
			continue
		}
		ran++
		t.Run(x.Name, func(t *testing.T) {
			r, err := collect.Run(context.Background(), collect.Experiment{Store: t.TempDir(), Name: x.Name, Params: x.Params, Python: python,
				Machine: machine, Stdout: io.Discard, Stderr: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			if r.Manifest.Status != schemas.StatusOK || r.Manifest.Source != schemas.Predicted {
				t.Fatalf("status %s (%s), source %s", r.Manifest.Status, r.Manifest.Reason, r.Manifest.Source)
			}
			rep, err := ingest.Run(r.Dir, ingest.Options{Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			if v := rep.Devices[0]; v.Verdict != schemas.Exact || v.ResidueBytes != 0 || v.AmbiguousTags != 0 {
				t.Fatalf("%+v", v)
			}
			if !same {
				return
			}
			want := full[x.Params["method"].(string)]
			if got, want := rep.Devices[0].PeakAllocatedBytes, device(t, want).PeakAllocatedBytes; got != want {
				t.Errorf("peak %d, recorded %d", got, want)
			}
			if !reflect.DeepEqual(x.Params, integers(want.Manifest.Params)) {
				t.Fatalf("the recording has other parameters: %v, not %v", want.Manifest.Params, x.Params)
			}
			got, recorded := categories(t, load(t, r.Dir)), categories(t, want.in)
			if !reflect.DeepEqual(got, recorded) {
				t.Errorf("breakdown\n%v, recorded\n%v", got, recorded)
			}
		})
	}
	if ran != 3 {
		t.Errorf("%d experiments, not 3", ran)
	}
}

func load(t *testing.T, dir string) analyze.Input {
	t.Helper()
	sel, err := store.Open(dir).Resolve([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := store.Load(sel.Runs[0], store.WantAll)
	if err != nil {
		t.Fatal(err)
	}
	return analyze.Input(*tab)
}

// categories is the breakdown at the peak: bytes, shared, tagged and the category's own maximum.
func categories(t *testing.T, in analyze.Input) map[string][4]int64 {
	t.Helper()
	b, err := analyze.Breakdown(in, analyze.At{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][4]int64{}
	for _, c := range b.Devices[0].Categories {
		out[c.Category] = [4]int64{c.Bytes, c.SharedBytes, c.TaggedBytes, c.MaxBytes}
	}
	return out
}

// integers gives JSON's numbers the type that they had.
func integers(params map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range params {
		if f, ok := v.(float64); ok && f == float64(int64(f)) && k != "learning_rate" && k != "noise_multiplier" && k != "max_grad_norm" {
			v = int64(f)
		}
		out[k] = v
	}
	return out
}
