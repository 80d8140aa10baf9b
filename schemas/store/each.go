package store

import (
	"errors"
	"slices"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// LoadOrManifest is [Load], except that a run without tables gives only its manifest. A list of runs shows such a
// run, while an analysis refuses it.
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
// one run's tables are in memory. An unreadable run is an error if an argument named it in particular. If an argument
// stood for many runs, the others are still read: read is the selection without damaged runs, and damaged lists the
// damaged runs.
func (sel *Selection) Each(want schemas.Want, tolerant bool, use func(*schemas.Tables) error) (read *Selection,
	damaged []Damaged, err error) {
	return sel.EachBut(func(int) bool { return false }, want, tolerant, use)
}

// EachBut is [Selection.Each] without the runs for which had returns true. had gets a run's place in the selection.
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
	if len(sel.Runs) == 0 && len(sel.Damaged) > 0 { // not even their manifests
		return nil, damaged, UnreadableError{sel.Damaged[0]}
	}
	if len(whole) == 0 {
		return nil, damaged, &NoneReadableError{len(sel.Runs)}
	}
	read = sel.Only(whole)
	read.Damaged = slices.Concat(sel.Damaged, damaged)
	return read, damaged, nil
}

// A TablesError is a run whose tables cannot be read. Tables can be derived again from the run's journal.
type TablesError struct {
	Dir string // the run's folder
	Err error
}

func (e *TablesError) Error() string { return e.Err.Error() }

func (e *TablesError) Unwrap() error { return e.Err }

// A NoneReadableError says that several runs were selected and the tables of none can be read.
type NoneReadableError struct{ Runs int }

func (e *NoneReadableError) Error() string {
	return "none of " + units.Plural(e.Runs, "run", "runs") + " can be read"
}
