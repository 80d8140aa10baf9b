package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// Progress says how far a run has come that is still being recorded.
type Progress struct {
	Steps   int64         // number of steps that have ended; -1 = nothing is recorded yet
	Written time.Duration // since anything was last written to disk; -1 = not known
}

// SetRunning sets the status [schemas.StatusRunning] for runs that a collector is still recording. The manifest of a
// run that is still being recorded has the status that would apply if the collector died. recording returns a run's
// progress, or nil if no collector is recording the run.
func (sel *Selection) SetRunning(recording func(dir string) *Progress) {
	for i, r := range sel.Runs {
		if r.Manifest.Status != schemas.StatusPartial || r.Manifest.End != nil {
			continue
		}
		if progress := recording(r.Dir); progress != nil {
			running := *r.Manifest
			running.Status, running.Reason = schemas.StatusRunning, ""
			sel.Runs[i].Manifest, sel.Runs[i].Progress = &running, progress
		}
	}
}

// A RunningError says that a run has no tables yet because it has not ended, and how far it has come.
type RunningError struct {
	RunID    string
	Start    time.Time
	Progress Progress
}

// running returns the error for a run that has not ended.
func (r Run) running() *RunningError {
	e := &RunningError{RunID: r.ID, Start: r.Manifest.Start, Progress: Progress{Steps: -1, Written: -1}}
	if r.Progress != nil {
		e.Progress = *r.Progress
	}
	return e
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("run %s is still running, since %s UTC: %s; dpsight makes its tables when it ends", e.RunID,
		e.Start.UTC().Format("2006-01-02 15:04"), e.Progress)
}

// String returns the progress as a part of a sentence.
func (p Progress) String() string {
	var said []string
	if p.Steps < 0 {
		return "nothing is recorded yet"
	}
	said = append(said, units.Plural(int(p.Steps), "step", "steps")+" so far")
	if p.Written >= 0 {
		said = append(said, fmt.Sprintf("last written %s ago", p.Written.Round(time.Second)))
	}
	return strings.Join(said, ", ")
}
