package store

import (
	"errors"
	"slices"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// LoadOrManifest is [Load], but returns only the manifest, and no error, for a run without tables. A list of runs shows
// a run without tables, while an analysis refuses it.
func LoadOrManifest(r Run, want schemas.Want) (*schemas.Tables, error) {
	t, err := Load(r, want)
	var pending *NotIngestedError
	var running *RunningError
	if errors.As(err, &pending) || errors.As(err, &running) {
		return t, nil
	}
	return t, err
}

// Each loads the selected runs ([LoadOrManifest] if tolerant) and passes them to use one after another, so that only
// one run's tables are in memory. If the arguments named single runs, an unreadable run is an error. If an argument
// stood for many runs, Each skips unreadable runs: read is the selection without them, and damaged lists them.
func (sel *Selection) Each(want schemas.Want, tolerant bool, use func(*schemas.Tables) error) (read *Selection,
	damaged []Damaged, err error) {
	return sel.EachBut(func(int) bool { return false }, want, tolerant, use)
}

// EachBut is [Selection.Each], but does not load the runs for which had returns true. had gets a run's index in the
// selection.
func (sel *Selection) EachBut(had func(i int) bool, want schemas.Want, tolerant bool,
	use func(*schemas.Tables) error) (read *Selection, damaged []Damaged, err error) {
	load := Load
	if tolerant {
		load = LoadOrManifest
	}
	var whole []Run
	for i, r := range sel.Runs {
		if had(i) {
			whole = append(whole, r)
			continue
		}
		t, err := load(r, want)
		if err != nil {
			err = &TablesError{r.Dir, err}
			if len(sel.Runs) <= max(1, sel.args) {
				return nil, damaged, err
			}
			damaged = append(damaged, Damaged{Dir: r.Dir, Err: err})
			continue
		}
		if err := use(t); err != nil {
			return nil, damaged, err
		}
		whole = append(whole, r)
	}
	if len(sel.Runs) == 0 && len(sel.Damaged) > 0 { // not even the manifests of the runs can be read
		return nil, damaged, UnreadableError{sel.Damaged[0]}
	}
	if len(whole) == 0 {
		return nil, damaged, &NoneReadableError{len(sel.Runs)}
	}
	read = sel.Only(whole)
	read.Damaged = slices.Concat(sel.Damaged, damaged)
	return read, damaged, nil
}

// A TablesError says that a run's tables cannot be read. dpsight can usually derive tables again from the run's
// journal.
type TablesError struct {
	Dir string // the run's folder
	Err error
}

func (e *TablesError) Error() string { return e.Err.Error() }

func (e *TablesError) Unwrap() error { return e.Err }

// A NoneReadableError says that the tables of all selected runs are unreadable.
type NoneReadableError struct{ Runs int }

func (e *NoneReadableError) Error() string {
	return "none of " + units.Plural(e.Runs, "run", "runs") + " can be read"
}
