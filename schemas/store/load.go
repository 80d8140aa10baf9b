package store

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/dpsight/dpsight/schemas"
)

// Want is a set of tables to load.
type Want uint

// The tables. Manifest and ingest report are always read.
const (
	WantMemory Want = 1 << iota // allocations and owners
	WantTimes                   // steps and phases
	// NVML samples and processes (these also with memory or times, where a run has several devices or ranks)
	WantSamples
	WantEvents    // the events that change what is reserved; the others are not loaded
	WantGradients // when each gradient was written
	// with WantMemory: where blocks were born, names and modules of owners, modules, stacks and windows (these also
	// without, where requests failed)
	WantDetail
	WantClock       // when each event happened
	WantModuleTimes // GPU time by module, and modules

	// WantAll is all that a summary needs. Detail is not in it: it would take most of a report's time.
	WantAll = WantMemory | WantTimes | WantSamples | WantEvents | WantGradients
)

// Tables is a run as analysis sees it. Its fields are those of analyze.Input, in the same order, so that one converts
// into the other: analyze.Input(*tables). Neither package imports the other.
type Tables struct {
	Manifest    *schemas.Manifest
	Report      *schemas.IngestReport // nil: never ingested
	Allocations []schemas.Allocation  // identity, sizes and life; with detail where they were born
	Owners      []schemas.Owner       // with detail their names and modules
	Steps       []schemas.Step
	Phases      []schemas.Phase
	Processes   []schemas.Process
	Samples     []schemas.Sample
	Events      []schemas.Event // segment events only
	Gradients   []schemas.GradientWrite
	Modules     []schemas.Module     // detail
	Stacks      []schemas.StackFrame // detail
	Clocks      []schemas.EventClock
	ModuleTimes []schemas.ModuleTime
	Segments    []schemas.SegmentBlock // detail, or requests that failed: the lists with which later windows open
}

// A NotIngestedError says that a run has a journal but no tables yet.
type NotIngestedError struct{ RunID, Dir string }

func (e *NotIngestedError) Error() string {
	return fmt.Sprintf("run %s has not been ingested: dpsight ingest %s", e.RunID, e.Dir)
}

// Load reads what is wanted of a run. A run that was never ingested gives its manifest and a *NotIngestedError, even
// where no table is wanted; a table that a run has no use for (allocations of a bare run) is empty.
func Load(r Run, want Want) (*Tables, error) {
	t := &Tables{Manifest: r.Manifest}
	report, err := schemas.ReadIngestReport(r.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, &NotIngestedError{r.ID, r.Dir}
	case err != nil:
		return t, fmt.Errorf("run %s: %w", r.ID, err)
	}
	t.Report = report
	var events int64
	for _, d := range report.Devices {
		events += d.Events
	}
	recorded := events > 0
	type job struct {
		want Want
		read func() error
	}
	lists := WantDetail
	if len(report.OOMs) > 0 { // what was cached when they failed is in the lists, and a summary says it
		lists |= WantMemory
	}
	processes := WantSamples
	if len(report.Devices) > 1 { // what is reserved depends on whether several had one GPU, and a summary says it
		processes |= WantMemory | WantTimes
	}
	jobs := []job{
		{WantMemory, func() (err error) {
			t.Allocations, err = allocations(r.Dir, recorded, want&WantDetail != 0)
			return err
		}},
		{WantMemory, func() (err error) { t.Owners, err = owners(r.Dir, recorded, want&WantDetail != 0); return err }},
		{WantEvents, func() (err error) { t.Events, err = segmentEvents(r.Dir, recorded); return err }},
		{WantClock, func() (err error) { t.Clocks, err = eventClocks(r.Dir, recorded); return err }},
		{WantGradients, func() (err error) {
			if recorded {
				t.Gradients, err = gradientWrites(r.Dir)
			}
			return err
		}},
		{WantDetail | WantModuleTimes, func() error { return read(&t.Modules, schemas.Modules, r.Dir) }},
		{WantModuleTimes, func() error { return read(&t.ModuleTimes, schemas.ModuleTimes, r.Dir) }},
		{lists, func() (err error) { t.Segments, err = windowLists(r.Dir, report); return err }},
		{WantDetail, func() error { return read(&t.Stacks, schemas.Stacks, r.Dir) }},
		{WantTimes, func() error { return read(&t.Steps, schemas.Steps, r.Dir) }},
		{WantTimes, func() error { return read(&t.Phases, schemas.Phases, r.Dir) }},
		{processes, func() error { return read(&t.Processes, schemas.Processes, r.Dir) }},
		{WantSamples, func() (err error) { t.Samples, err = samples(r.Dir); return err }},
	}
	// Decoding is all of a report's time, and the tables do not depend on each other.
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for i, j := range jobs {
		if want&j.want != 0 {
			wg.Go(func() { errs[i] = j.read() })
		}
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return t, fmt.Errorf("run %s: %w", r.ID, err)
		}
	}
	return t, nil
}

func read[T any](rows *[]T, table schemas.Table[T], dir string) (err error) {
	*rows, err = table.ReadOptional(dir)
	return err
}
