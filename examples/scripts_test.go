package examples_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
)

// What may stay unexplained of the peak of a script that nobody wrote for dpsight.
const (
	scriptUnowned   = 0.03 // other and untraced
	scriptPhaseOnly = 0.15 // known by nothing but the phase of birth
)

// The scripts of suites/scripts.yaml are no DP examples and know nothing of dpsight. On the phantom GPU, at the sizes that the
// suite gives them on a real one, the breakdown of their peaks leaves nearly nothing open.
//
// DPSIGHT_TEST_SCRIPTS_PYTHON names an interpreter with requirements/scripts.txt. Without it only those that need torch alone run.
func TestScriptsAreBrokenDown(t *testing.T) {
	plan, err := suite.Load(filepath.Join("suites", "scripts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	machine, err := collect.OpenMachine("phantom")
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	for _, x := range plan.Experiments {
		t.Run(x.Name, func(t *testing.T) {
			python := os.Getenv("DPSIGHT_TEST_SCRIPTS_PYTHON")
			if python == "" && x.Name == "gan" {
				python = os.Getenv("DPSIGHT_TEST_PYTHON")
			}
			if python == "" {
				t.Skip("SKIPPED: DPSIGHT_TEST_SCRIPTS_PYTHON names no Python with requirements/scripts.txt")
			}
			command := append(slices.Clone(x.Command), "--steps", "6")
			command[0], command[1] = python, filepath.Join("..", command[1])
			r, err := collect.Run(t.Context(), collect.Experiment{Store: t.TempDir(), Name: x.Name, Command: command, Machine: machine,
				Timeout: plan.Timeout, Stdout: io.Discard, Stderr: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			if r.Manifest.Status != schemas.StatusOK {
				t.Fatalf("status %s (%s)", r.Manifest.Status, r.Manifest.Reason)
			}
			rep, err := ingest.Run(r.Dir, ingest.Options{Version: "test"})
			if err != nil {
				t.Fatal(err)
			}
			if v := rep.Devices[0]; v.Verdict != schemas.Exact || v.ResidueBytes != 0 || v.AmbiguousTags != 0 || v.UnboundTags != 0 {
				t.Errorf("%+v", v)
			}
			in := load(t, r.Dir)
			if n := len(in.Steps); n != 6 {
				t.Errorf("%d steps, the script makes 6", n)
			}
			expectBrokenDown(t, in)
		})
	}
}

// expectBrokenDown holds the breakdown at the peak to the limits.
func expectBrokenDown(t *testing.T, in analyze.Input) {
	t.Helper()
	b, err := analyze.Breakdown(in, analyze.At{})
	if err != nil {
		t.Fatal(err)
	}
	d := b.Devices[0]
	var unowned, phaseOnly int64
	for _, c := range d.Categories {
		phaseOnly += c.PhaseOnlyBytes
		if c.Category == schemas.Other || c.Category == schemas.Untraced {
			unowned += c.Bytes
		}
	}
	peak := float64(d.AllocatedBytes)
	if peak < 1<<30 {
		t.Errorf("a peak of %.0f bytes says little", peak)
	}
	if share := float64(unowned) / peak; share > scriptUnowned {
		t.Errorf("%.2f %% of the peak belong to other or are untraced", 100*share)
	}
	if share := float64(phaseOnly) / peak; share > scriptPhaseOnly {
		t.Errorf("%.2f %% of the peak are known by their phase alone", 100*share)
	}
}
