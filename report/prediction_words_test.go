package report

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/schemas"
)

// A prediction reports failed requests, whether the script caught them or torch recovered from them.
func TestSurvivedIsTold(t *testing.T) {
	in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
	in.Manifest.Source = schemas.Predicted
	told := func() (string, string) {
		doc := predict.NewPredictionDocument(predict.Predict(in))
		printed := PredictionTables(doc)[0].Document.(predict.PredictionDocument)
		return predictionSentence(&doc.Runs[0]), strings.Join(printed.Runs[0].Warnings, "\n")
	}
	in.Report.OOMs = []schemas.OOM{{RequestedBytes: 1 << 30, Step: 2}}
	if sentence, warnings := told(); !strings.Contains(sentence, " fits on ") ||
		!strings.HasSuffix(sentence, "; the script caught 1 out-of-memory error") ||
		!strings.Contains(warnings, "a request for 1,024.00 MiB failed in step 2, and the script continued") {
		t.Errorf("%q, %q", sentence, warnings)
	}
	in.Report.OOMs = []schemas.OOM{{RequestedBytes: 1 << 30, Raised: new(false)},
		{RequestedBytes: 2 << 30, Raised: new(false)}}
	_, warnings := told()
	if !strings.Contains(warnings, "2 requests for workspaces failed, and torch continued") {
		t.Errorf("%q", warnings)
	}
}

// If the limit is the whole device, the texts state the device's memory and how much of it the CUDA context takes.
func TestPredictionTellsOfTheLimit(t *testing.T) {
	p := predict.PredictionRun{GPU: "NVIDIA H200", MemoryBytes: new(int64(512 << 20)), Fits: new(false),
		Failure: &schemas.OOM{RequestedBytes: 1 << 30, LimitBytes: 600 << 20}, OfDeviceBytes: 600 << 20}
	if got := predictionSentence(&p); !strings.HasSuffix(got, " with 512.00 MiB for its tensors (the device has "+
		"600.00 MiB, and its CUDA context takes 88.00 MiB): a request for 1,024.00 MiB failed") {
		t.Error(got)
	}
	p.OfDeviceBytes = 0
	if got := predictionSentence(&p); !strings.HasSuffix(got,
		" with 512.00 MiB for its tensors: a request for 1,024.00 MiB failed") {
		t.Error(got)
	}
}

// If a script allocated nothing on a device, the advice asks whether the user forgot an option.
func TestPredictionAdvice(t *testing.T) {
	for _, uninjected := range [][]string{nil, {"python cpu.py"}} {
		in := schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Name: "x", Status: schemas.StatusOK,
			Source: schemas.Predicted, Phantom: &schemas.Phantom{Checked: true, CheckedTorch: "2.11.0"}},
			Report: &schemas.IngestReport{Prediction: &schemas.Prediction{Complete: uninjected == nil}}}
		in.Manifest.Collector.Uninjected = uninjected
		if p := predict.Predict(in); !strings.Contains(predictionAdvice(&p), "--device cuda") {
			t.Errorf("%q", predictionAdvice(&p))
		}
	}
}

// If a script failed because of a missing device or a check of an unknown value, the prediction gives advice. If the
// script failed for another reason, there is none.
func TestPredictionAdviceOnFailures(t *testing.T) {
	for reason, want := range map[string]string{
		"AcceleratorError: CUDA error: invalid device ordinal": "predict --gpus N",
		"AssertionError: Invalid device id":                    "predict --gpus N",
		"AssertionError; train.py:7" + schemas.SuspectedRead:   "--steps N ends the script after N steps",
		// An older version of dpsight wrote this reason.
		"AssertionError; t.py:7 had read a value that nobody computed, which may be why": "--steps N ends the script",
		"KeyError: 'of its own'": "",
	} {
		in := schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Name: "x", Status: schemas.StatusFailed, Reason: reason,
			Source: schemas.Predicted, Phantom: &schemas.Phantom{Checked: true, CheckedTorch: "2.11.0"}},
			Report: &schemas.IngestReport{Prediction: &schemas.Prediction{Complete: true}}}
		p := predict.Predict(in)
		if got := predictionAdvice(&p); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", reason, got)
		}
	}
}
