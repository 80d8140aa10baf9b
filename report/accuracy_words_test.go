package report

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/predict"
)

// If an experiment was predicted for one GPU or torch version and measured with another, a warning of the document says
// so. Equal warnings are printed once, with the names of all their experiments.
func TestAccuracyWords(t *testing.T) {
	was := predict.AccuracyDocument{Warnings: []string{}, Unlike: []predict.Unlike{
		{What: predict.UnlikeGPU, Predicted: "Tesla T4", Measured: "NVIDIA H200", Label: "low"},
		{What: predict.UnlikeTorch, Predicted: "2.10", Measured: "2.11", Label: "low"},
		{What: predict.UnlikeGPU, Predicted: "Tesla T4", Measured: "NVIDIA H200", Label: "high"}}}
	want := []string{"low, high: predicted for Tesla T4 and measured on NVIDIA H200",
		"low: predicted with torch 2.10 and measured with 2.11"}
	made := AccuracyTable(was)
	if got := made.Document.(predict.AccuracyDocument).Warnings; !slices.Equal(got, want) ||
		!slices.Contains(made.Notes, want[0]) {
		t.Errorf("%q, notes %q", got, made.Notes)
	}
	if len(was.Warnings) > 0 {
		t.Error("the document that was given is another now")
	}
}

// If measured runs of an experiment are left out, a warning names them, and says how their origin differs from the
// counted runs'.
func TestPassedWords(t *testing.T) {
	doc := tellAccuracy(predict.AccuracyDocument{Passed: []gate.Passed{{Label: "low", Runs: 2, Apart: []identity.Apart{
		{Part: "GPU", This: "NVIDIA H200", That: "NVIDIA H100"}, {Part: identity.PartFile, File: "train.py"},
		{Part: identity.PartRules, This: "10", That: "9"},
		{Part: identity.PartAgent, This: "sha256:1", That: "sha256:2"}}}}})
	want := "low: 2 measured runs are left out: their origin differs from the others' (GPU NVIDIA H100, not NVIDIA " +
		"H200; train.py differs; rules 9, not 10; dpsight's agent differs)"
	if !slices.Equal(doc.Warnings, []string{want}) {
		t.Errorf("%q", doc.Warnings)
	}
}

// The documents of predictions and of searches, and their sentences, give the reason why a run does not fit.
func TestWhyWords(t *testing.T) {
	const caught = "the script caught 3 out-of-memory errors and continued"
	const unsaid = "a process ended before it could report its memory"
	run := predict.PredictionRun{Fits: new(false), Because: predict.Because{Cause: predict.CauseCaught, Caught: 3}}
	doc := tellPredictions(predict.PredictionDocument{Runs: []predict.PredictionRun{run,
		{Because: predict.Because{Cause: predict.CauseUnsaid}},
		{Because: predict.Because{Cause: predict.CauseEnded, Status: "failed", Reason: "ValueError"}}}})
	if doc.Runs[0].Why != caught || doc.Runs[1].Why != unsaid || doc.Runs[2].Why != "failed: ValueError" {
		t.Errorf("%q, %q, %q", doc.Runs[0].Why, doc.Runs[1].Why, doc.Runs[2].Why)
	}
	cell := predict.FitCell{Stopped: "stopped: " + unsaid, Probes: []predict.FitProbe{
		{Fits: new(false), Because: predict.Because{Cause: predict.CauseCaught, Caught: 3}},
		{Because: predict.Because{Cause: predict.CauseUnsaid}}}}
	probes := tellFit(predict.FitDocument{Cells: []predict.FitCell{cell}}).Cells[0].Probes
	if probes[0].Why != caught || probes[1].Why != "" {
		t.Errorf("%+v", probes)
	}
}
