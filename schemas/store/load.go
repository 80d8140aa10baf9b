package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dpsight/dpsight/schemas"
)

// A NotIngestedError says that a run has a journal but no tables yet.
type NotIngestedError struct{ RunID, Dir string }

func (e *NotIngestedError) Error() string {
	return fmt.Sprintf("run %s has not been ingested: dpsight ingest %s", e.RunID, e.Dir)
}

// Load reads the wanted tables of a run. For a run that was not ingested, Load returns the manifest and a
// *NotIngestedError, even if no table is wanted. A table that a run cannot have, such as allocations of a bare run, is
// empty.
func Load(r Run, want schemas.Want) (*schemas.Tables, error) { return load(r, want, nil) }

func load(r Run, want schemas.Want, within *Window) (*schemas.Tables, error) {
	r, err := r.full()
	if err != nil {
		return nil, err
	}
	t := &schemas.Tables{Manifest: r.Manifest}
	report, err := schemas.ReadIngestReport(r.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.Manifest.Status == schemas.StatusRunning:
		return t, r.running()
	case errors.Is(err, fs.ErrNotExist):
		return t, &NotIngestedError{r.ID, r.Dir}
	case err != nil:
		return t, fmt.Errorf("run %s: %w", r.ID, err)
	}
	t.Report = report
	if want&schemas.WantLives != 0 && len(report.OOMs) > 0 { // they need the places of blocks, too
		want |= schemas.WantMemory
	}
	digests := maps.Clone(report.Tables)
	if digests == nil {
		digests = map[string]string{}
	}
	maps.Copy(digests, r.Manifest.Tables)
	jobs := loads(r, t, want, within)
	// Decoding tables takes most of a report's time, and the tables do not depend on each other, so several are decoded at
	// the same time.
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for i, j := range jobs {
		if want&j.want != 0 {
			wg.Go(func() {
				if errs[i] = schemas.CheckTables(r.Dir, digests, j.files...); errs[i] == nil {
					errs[i] = j.read()
				}
			})
		}
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return t, fmt.Errorf("run %s: %w", r.ID, err)
		}
	}
	return t, sayGone(t.Report, r.Dir)
}

// A tableLoad reads one or two fields of a run's tables.
type tableLoad struct {
	want  schemas.Want // the tables that need this loader
	read  func() error
	files []string // files that the loader reads
}

// loads returns the table loads that fill t. The report in t must have been read before.
func loads(r Run, t *schemas.Tables, want schemas.Want, within *Window) []tableLoad {
	report := t.Report
	recorded := slices.ContainsFunc(report.Devices, func(d schemas.DeviceVerdict) bool { return d.Events > 0 })
	events := sync.OnceValues(func() ([]schemas.Event, error) { return segmentEvents(r.Dir, recorded) })
	lists := schemas.WantDetail
	if len(report.OOMs) > 0 { // a list has the cached blocks at a failed request, which summaries state
		lists |= schemas.WantMemory
	}
	processes := schemas.WantSamples
	if len(report.Devices) > 1 { // reserved depends on whether several processes shared a GPU, and summaries state it
		processes |= schemas.WantMemory | schemas.WantLives | schemas.WantTimes
	}
	detail := want&schemas.WantDetail != 0
	blocks := sync.OnceValues(func() ([]schemas.Allocation, error) {
		return allocations(r.Dir, recorded, detail, within)
	})
	return []tableLoad{
		{schemas.WantMemory, func() (err error) { t.Allocations, err = blocks(); return err },
			[]string{schemas.Allocations.File()}},
		{schemas.WantMemory, func() (err error) {
			var of []schemas.Allocation
			if within != nil { // owners can only be selected once their blocks are loaded
				if of, err = blocks(); err != nil {
					return err
				}
			}
			t.Owners, err = owners(r.Dir, recorded, detail, within, of)
			return err
		}, []string{schemas.Owners.File()}},
		{schemas.WantLives, func() (err error) {
			t.Lives, err = lives(r.Dir)
			return optional(err, recorded)
		}, []string{schemas.Allocations.File(), schemas.Owners.File()}},
		{schemas.WantEvents, func() (err error) { t.Events, err = events(); return err },
			[]string{schemas.Events.File()}},
		{schemas.WantEvents | schemas.WantReserved,
			func() (err error) { t.Reserved, err = reserved(r.Dir, events, report); return err },
			[]string{schemas.Reserved.File()}},
		{schemas.WantClock,
			func() (err error) { t.Clocks, err = eventClocks(r.Dir, recorded); return err },
			[]string{schemas.Events.File()}},
		{schemas.WantGradients, func() (err error) {
			if recorded {
				t.Gradients, err = gradientWrites(r.Dir)
			}
			return err
		}, []string{schemas.Events.File(), schemas.Marks.File()}},
		{schemas.WantDetail | schemas.WantModuleTimes,
			func() error { return read(&t.Modules, schemas.Modules, r.Dir) },
			[]string{schemas.Modules.File()}},
		{schemas.WantModuleTimes,
			func() error { return read(&t.ModuleTimes, schemas.ModuleTimes, r.Dir) },
			[]string{schemas.ModuleTimes.File()}},
		{lists,
			func() (err error) { t.Segments, err = windowLists(r.Dir, report); return err },
			[]string{schemas.Segments.File()}},
		{schemas.WantDetail,
			func() error { return read(&t.Stacks, schemas.Stacks, r.Dir) },
			[]string{schemas.Stacks.File()}},
		{schemas.WantDetail,
			func() (err error) { t.Lines, t.Sources, err = lines(r); return err },
			[]string{schemas.Lines.File()}},
		{schemas.WantDetail,
			func() (err error) { t.Holders, err = schemas.Holders.ReadOptional(r.Dir); return err },
			[]string{schemas.Holders.File()}},
		{schemas.WantTimes,
			func() error { return read(&t.Steps, schemas.Steps, r.Dir) },
			[]string{schemas.Steps.File()}},
		{schemas.WantTimes,
			func() error { return read(&t.Phases, schemas.Phases, r.Dir) },
			[]string{schemas.Phases.File()}},
		{processes,
			func() error { return read(&t.Processes, schemas.Processes, r.Dir) },
			[]string{schemas.Processes.File()}},
		{schemas.WantHost,
			func() error { return read(&t.Host, schemas.HostSamples, r.Dir) },
			[]string{schemas.HostSamples.File()}},
		{schemas.WantHostMarks,
			func() (err error) { t.HostMarks, err = schemas.HostMarks.ReadOptional(r.Dir); return err },
			[]string{schemas.HostMarks.File()}},
		{schemas.WantHost, func() (err error) { t.UserMarks, err = userMarks(r.Dir); return err },
			[]string{schemas.Events.File(), schemas.Marks.File()}},
		{schemas.WantSamples, func() (err error) { t.Samples, err = samples(r.Dir); return err },
			[]string{schemas.Samples.File()}},
	}
}

func read[T any](rows *[]T, table schemas.Table[T], dir string) (err error) {
	*rows, err = table.ReadOptional(dir)
	return err
}

// sayGone notes in the report which of the tables of steps, phases and marks are missing, and withdraws the claim that
// the figures are exact. Ingest writes these tables even if they have no rows, so somebody removed a missing one.
// Digests would show a missing table only if it is read, and older reports have no digests.
func sayGone(report *schemas.IngestReport, dir string) error {
	for _, name := range []string{schemas.Steps.File(), schemas.Phases.File(), schemas.Marks.File()} {
		_, err := os.Stat(filepath.Join(dir, name))
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		report.Gone = append(report.Gone, name)
		for i := range report.Devices {
			if v := &report.Devices[i]; v.Verdict == schemas.Exact {
				v.Verdict, v.Reason = schemas.Unverifiable, name+" is gone"
			}
		}
	}
	return nil
}
