package ingest

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// RulesVersion is the version of the rules of attribution.
const RulesVersion = join.RulesVersion

// RulesHash returns a hash of the tables that the attribution rules use.
func RulesHash() string { return join.RulesHash() }

// Options are the options of ingesting.
type Options struct {
	Version string // version of dpsight, for the report
	Again   bool   // for [Import]: ingests inputs that were ingested before, too
	Ranks   bool   // for [ImportAll]: all paths are snapshots of the ranks of one run
	// Prepare is called for each run folder of [Import] before anything else, to complete a run whose collector was
	// killed. Prepare may be nil.
	Prepare func(dir string) error
	// StackRules are the user's rules on stacks, for snapshots. If nil, a run that is ingested again keeps the rules
	// with which it was made.
	StackRules []schemas.StackRule
	// Remake is called for each run folder of [Import] that was ingested before, just before its tables are made again.
	// Remake may be nil.
	Remake func(dir string)
	// Begin is called for each file and run folder of [Import] before it is read. Begin may be nil.
	Begin func(path string)
}

// Run ingests a run folder. Run seals the journals that a killed collector left unsealed, and derives all tables from
// the journals, replacing earlier tables. Run does not change run.json. If another process is ingesting the same
// folder, Run waits until it has finished.
func Run(dir string, o Options) (*schemas.IngestReport, error) {
	lock, err := schemas.LockPath(dir)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	return derive(dir, o)
}

// derive is [Run] for a folder whose lock the caller holds.
func derive(dir string, o Options) (*schemas.IngestReport, error) {
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	switch {
	case m.FiguresOnly():
		return ingestFigures(dir, m, o)
	case m.Import != nil:
		return ingestSnapshot(dir, m, o)
	}
	var warnings []string
	folder := filepath.Join(dir, spool.Dir)
	if running, err := living(folder); err != nil {
		return nil, err
	} else if len(running) > 0 {
		warnings = append(warnings, fmt.Sprintf("process %d still runs: its journal is read as far as it goes",
			running[0]))
	} else if err := sealLate(folder, m); err != nil {
		return nil, err
	}
	journals, err := spool.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	if n := m.Collector.SealedJournals; len(journals) < n {
		return nil, &MissingError{fmt.Sprintf("%d of the %d journals that were sealed are gone", n-len(journals), n)}
	}
	if err := allThere(dir, journals); err != nil {
		return nil, err
	}
	r := newReport(m, o)
	r.Warnings = append(r.Warnings, warnings...)
	if len(journals) == 0 && len(m.Warnings) == 0 { // the collector tells why, if it saw the end of the run
		r.warn("the run has no journal: no process of it used torch with the agent in place")
	}
	err = write(dir, r, false, func(t *tables) error {
		for _, j := range journals {
			if err := ingestJournal(m, j, t, r); err != nil {
				return fmt.Errorf("rank %d: %w", j.Rank, err)
			}
		}
		r.warnOfDevices()
		if r.Prediction = prediction(m, journals); r.Prediction != nil {
			r.Prediction.Band = band(m, &r.IngestReport)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &r.IngestReport, nil
}

// sealLate seals the journals that a killed collector left unsealed. A run that ended well has unsealed journals only
// if sealing failed. An unsealed journal of a run that ended well must be whole, since the journal's process ended
// before the run did. If the journal is torn or has no end, its tail was lost later, and sealLate returns an error.
func sealLate(folder string, m *schemas.Manifest) error {
	paths, err := spool.LiveJournals(folder)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if m.Status != schemas.StatusOK {
			break
		}
		switch j, err := spool.OpenLive(path); {
		case err != nil:
			return err
		case j.Torn != nil:
			return &MissingError{fmt.Sprintf("the run ended well, and its journal %s is %v", filepath.Base(path),
				j.Torn)}
		case j.End == nil:
			return &MissingError{fmt.Sprintf("the run ended well, and its journal %s has no end", filepath.Base(path))}
		}
	}
	if _, err := spool.Seal(folder); err != nil {
		return fmt.Errorf("sealing the journals: %w", err)
	}
	return nil
}

// A MissingError says that a part of a recording existed when the run ended and is now missing.
type MissingError struct{ What string }

func (e *MissingError) Error() string { return "the recording is not whole: " + e.What }

// Hint returns advice on what to do about the missing part.
func (e *MissingError) Hint() string {
	return "bring the run's folder " + spool.Dir + " back from a copy; nothing in it was changed"
}

// allThere returns an error for a run whose journals are missing but whose tables exist, since the tables could not be
// made again. A run that had no journal from the beginning has a report without ranks or, if the report cannot be read,
// tables without marks.
func allThere(dir string, journals []*spool.Journal) error {
	switch before, err := schemas.ReadIngestReport(dir); {
	case err == nil:
		for _, rank := range before.Ranks {
			if !slices.ContainsFunc(journals, func(j *spool.Journal) bool {
				return j.Rank == rank.Rank
			}) && len(journals) < len(before.Ranks) {
				return refuse("the journal of rank %d is gone: the tables made from it stay, as nothing makes them "+
					"again", rank.Rank)
			}
		}
	case len(journals) == 0:
		if marks, err := schemas.Marks.ReadOptional(dir); err != nil || len(marks) > 0 {
			return refuse("its journal is gone: the tables made from it stay, as nothing makes them again")
		}
	}
	return nil
}
