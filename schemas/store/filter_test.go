package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// A condition selects the runs for which it is true. A condition may be about parameters, the machine or times.
func TestWhereTakesRuns(t *testing.T) {
	revision := "1a2b3c4d5e6f" + strings.Repeat("0", 28)
	runs := []Run{
		{Manifest: &schemas.Manifest{RunID: "a", Name: "ghost-long", Source: schemas.Measured, Status: schemas.StatusOK,
			Params: map[string]any{"method": "ghost", "seq_len": float64(16384)},
			Start:  time.Date(2026, 10, 2, 8, 0, 0, 0, time.UTC), Git: &schemas.Git{Revision: revision},
			Environment: &schemas.Environment{Torch: "2.11.0"}, Suite: &schemas.SuiteRef{ID: "20261002-s-1", Name: "s"}}},
		{Manifest: &schemas.Manifest{RunID: "b", Name: "ghost-short", Source: schemas.Predicted, Status: schemas.StatusOK,
			Params: map[string]any{"method": "ghost", "seq_len": float64(512)}, Bare: true,
			Start: time.Date(2026, 10, 1, 8, 0, 0, 0, time.UTC), Host: schemas.Host{Name: "gpu7"}}},
		{Manifest: &schemas.Manifest{RunID: "c", Name: "train", Source: schemas.Measured, Status: schemas.StatusOOM,
			Start: time.Date(2026, 9, 30, 23, 59, 0, 0, time.UTC), GPUs: []schemas.GPU{{Name: "NVIDIA H200"}}}},
	}
	for text, want := range map[string]string{
		"method=ghost and seq_len>=8192 and date>2026-10-01": "a",
		"method == ghost":                "a b",
		"method=train":                   "c",
		"date>=2026-10-01":               "a b",
		"date<2026-10-01":                "c",
		"date=2026-10-01":                "b",
		"date>'2026-10-01T08:00'":        "a",
		"revision=1a2b3c4":               "a",
		"revision=1a2b":                  "a",
		"date<today":                     "a b c",
		"date=2026-10-01 or date>today":  "b",
		"torch=2.11.0":                   "a",
		"suite=s or suite=20261002-s-1":  "a",
		"bare=yes":                       "b",
		"not bare=yes and status!=oom":   "a",
		"host=gpu7, source=predicted":    "b",
		`gpu="nvidia h200"`:              "c",
		"seq-len<8192":                   "b",
		"run=a or run=c":                 "a c",
		"status=oom or seq_len == 512.0": "b c",
	} {
		sel := &Selection{Runs: runs}
		err := sel.Where(text)
		var ids []string
		for _, r := range sel.Runs {
			ids = append(ids, r.Manifest.RunID)
		}
		if got := strings.Join(ids, " "); err != nil || got != want {
			t.Errorf("%s takes %q, want %q (%v)", text, got, want, err)
		}
	}
	git := func(last string) *schemas.Manifest {
		return &schemas.Manifest{RunID: last, Git: &schemas.Git{Revision: "1a2b" + strings.Repeat("0", 35) + last}}
	}
	two := &Selection{Runs: []Run{{Manifest: git("1")}, {Manifest: git("2")}}}
	if err := two.Where("revision=1a2b"); err == nil || !strings.Contains(err.Error(), "the beginning of 2 revisions") {
		t.Errorf("a beginning of two revisions: %v", err)
	}
	for text, want := range map[string]string{
		"seq_len > 99999": "true of none of 3 runs",
		"methd = ghost":   "did you mean method?",
		"method = ":       "it ends where",
		"date > somewhen": "somewhen is no date; a date is a day, as 2026-10-01",
		"seq_len > long":  "long is not a number",
	} {
		if err := (&Selection{Runs: runs}).Where(text); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
