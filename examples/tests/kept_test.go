package examples_test

import (
	"io"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
)

// For a headline run that keeps .grad, dpsight states the peak that the run would have without. A prediction of the
// same experiment with --zero-grad none has exactly that peak. If a method frees its gradients anyway, the predicted
// peak is the recorded one.
func TestPhantomPredictsPeaksWithoutKeptGradients(t *testing.T) {
	python := testkit.Python(t)
	if os.Getenv("DPSIGHT_TEST_LONG") == "" {
		t.Skip("DPSIGHT_TEST_LONG is unset: every method at the headline's size takes a minute")
	}
	machine, err := collect.OpenMachine("phantom")
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	plan, recordings := planOf(t, headline), firstRecordings(t, headline)
	methods, kept := 0, 0
	for _, x := range plan.Experiments {
		if x.Bare {
			continue
		}
		methods++
		s := analyze.Summarize(recordings[x.Key].in)
		want := *s.PeakBytes
		if s.Kept != nil {
			want = s.Kept.FreedPeakBytes
			kept++
		}
		t.Run(x.Name, func(t *testing.T) {
			params := maps.Clone(x.Params)
			params["zero_grad"], params["num_iter"] = "none", int64(1)
			r, err := collect.Run(t.Context(), collect.Experiment{Store: t.TempDir(), Name: x.Name, Params: params,
				LikeAGPU: true,
				Python:   python,
				Machine:  machine, Bare: true, Stdout: io.Discard, Stderr: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			if r.Manifest.Status != schemas.StatusOK {
				t.Fatalf("status %s (%s)", r.Manifest.Status, r.Manifest.Reason)
			}
			if !strings.HasPrefix(r.Manifest.Environment.Torch, recordedTorch) {
				t.Skip("another torch makes other peaks")
			}
			rep, err := ingest.Run(r.Dir, ingest.Options{Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			if got := *rep.Devices[0].TorchPeakAllocatedBytes; got != want {
				t.Errorf("peak %d, without kept gradients it should be %d (recorded: %d)", got, want, *s.PeakBytes)
			}
		})
	}
	if kept < methods-1 { // every method except vanilla
		t.Errorf("of %d methods %d keep gradients", methods, kept)
	}
}
