package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// A Selection has the runs for which the RUN arguments of a command stand.
type Selection struct {
	Runs []Run // in the order in which arguments name them, each once
	// Chosen says which runs were selected if the user named none ("suite headline (20261121T…), 6 runs"). Chosen is
	// empty if the user named runs.
	Chosen string
	// Suite is set if the selection is a whole suite, or a store with only one suite.
	Suite *Suite
	// Damaged lists unreadable run folders if an argument stands for all runs of a store. For an argument that stands
	// for all runs, a damaged folder is no error.
	Damaged []Damaged
	// Named has the folders of the runs that an argument named singly, by id, name or folder.
	Named map[string]bool
	// Missing lists runs that the suite names and the store does not have.
	Missing []string
	// Newest lists, for each named name that several runs of the store have, which run was selected.
	Newest []Newest

	args int              // number of arguments that the selection was resolved from
	all  map[string][]Run // runs of the stores that were listed, by the stores' folders
}

// Only returns the selection with only the given runs, as if no other runs had been selected.
func (sel *Selection) Only(runs []Run) *Selection {
	only := *sel
	only.Runs = runs
	return &only
}

// Newest says which run was selected for a name that several runs have.
type Newest struct {
	Name  string
	RunID string
	Of    int  // number of runs with that name
	Bare  bool // newer runs of that name are bare repeats of the same experiment
	// GPU is the GPU of the selected run, and Others are the GPUs of the other runs with the name. GPU and Others are
	// set only if they differ.
	GPU    string
	Others []string
}

func (n Newest) String() string {
	which := "the newest"
	if n.Bare {
		which = "the newest that is not bare"
	}
	text := fmt.Sprintf("%d runs are called %s: taking %s, %s", n.Of, n.Name, which, n.RunID)
	if len(n.Others) == 0 {
		return text
	}
	return fmt.Sprintf("%s, on %s; others ran on %s", text, n.GPU, strings.Join(n.Others, ", "))
}

// ErrNoRuns says that a store is empty.
var ErrNoRuns = errors.New("no runs")

// A NoRunsError is [ErrNoRuns] for a folder, with the folders directly below it that do hold runs.
type NoRunsError struct {
	Dir    string
	Absent bool // the folder does not exist
	Below  []string
}

func (e *NoRunsError) Error() string {
	if e.Absent {
		return fmt.Sprintf("no runs in %s: there is no such folder", e.Dir)
	}
	if strings.HasSuffix(e.Dir, ".") { // avoids the sentence "no runs in .", with two full stops
		return "no runs in " + absolute(e.Dir)
	}
	return "no runs in " + e.Dir
}

func (e *NoRunsError) Unwrap() error { return ErrNoRuns }

// An UnreadableError says that all run folders of a store are damaged. An UnreadableError contains the first one.
type UnreadableError struct{ Damaged }

func (e UnreadableError) Error() string { return "no run can be read: " + e.Damaged.Error() }

func (e UnreadableError) Unwrap() error { return e.Damaged }

// noRuns returns the error for a folder without runs, with the folders below it that the user may have meant.
func noRuns(dir string) *NoRunsError {
	e := &NoRunsError{Dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		e.Absent = errors.Is(err, fs.ErrNotExist)
		return e
	}
	for _, d := range entries {
		below := filepath.Join(dir, d.Name())
		if runs, _, err := Open(below).Runs(); d.IsDir() && err == nil && len(runs) > 0 {
			e.Below = append(e.Below, below)
		}
	}
	return e
}

// A NotFoundError says that an argument names no run, or more than one.
type NotFoundError struct {
	Arg   string
	Store string
	Near  []string // similar names and ids; for an ambiguous prefix, every match
	Many  bool     // the argument is a prefix of several runs' names or ids
	File  bool     // a file with that name exists
	// Absent is true if the store does not exist. Unread lists the store's run folders that could not be read; the run
	// may be in one of these.
	Absent bool
	Unread []string
}

func (e *NotFoundError) Error() string {
	if e.Many {
		return fmt.Sprintf("%q is the beginning of %d run ids in %s: %s", e.Arg, len(e.Near), e.Store,
			schemas.Shortlist(e.Near, fewRuns))
	}
	if strings.ContainsAny(e.Arg, `/\`) && !e.File {
		return e.Arg + ": there is no such folder"
	}
	msg := fmt.Sprintf("no run %q in %s", e.Arg, e.Store)
	if e.Absent {
		return msg + ": there is no such folder"
	}
	if len(e.Near) > 0 {
		msg += ": did you mean " + schemas.Shortlist(e.Near, fewRuns) + "?"
	}
	if len(e.Unread) > 0 {
		msg += ": not all of its run folders can be read (" + schemas.Shortlist(e.Unread, fewRuns) + ")"
	}
	return msg
}

// fewRuns is how many ids and names an error lists.
const fewRuns = 4

// Resolve finds the runs that the arguments name. An argument is one of these:
//   - a run folder, or a store, which stands for all its runs;
//   - a run id, or a unique prefix of one;
//   - a run's name: the newest run with that name, or of repeats the newest that is not bare;
//   - a suite's name: the runs of the newest suite with that name.
//
// Ids take precedence over names, and names over prefixes of ids, so that a run called "2026" can be named. Without an
// argument, Resolve takes the newest suite, or the newest run if that is newer.
func (s *Store) Resolve(args []string) (*Selection, error) { return s.resolve(args, false) }

// ResolveEach is [Store.Resolve] for commands that list runs. For ResolveEach, a name stands for all runs with that
// name, and without arguments ResolveEach selects the whole store.
func (s *Store) ResolveEach(args []string) (*Selection, error) {
	if len(args) == 0 {
		return s.All()
	}
	return s.resolve(args, true)
}

func (s *Store) resolve(args []string, each bool) (*Selection, error) {
	sel := &Selection{args: len(args)}
	if len(args) == 0 {
		return sel, s.newest(sel)
	}
	r := &resolver{store: s, each: each, sel: sel, seen: map[string]bool{}}
	for _, arg := range args {
		if err := r.take(arg); err != nil {
			return nil, err
		}
	}
	return sel, nil
}

// A NewestUnknownError says that the newest runs belong to a suite whose document cannot be read.
type NewestUnknownError struct{ Damaged }

func (e NewestUnknownError) Error() string {
	return "which runs are the newest cannot be told: " + e.Damaged.Error()
}

// Hint says what to do about the suite's unreadable document.
func (e NewestUnknownError) Hint() string {
	return "name the runs, or bring the document back from a copy"
}

// IsNamed reports whether an argument named this single run, and not a whole store that contains it.
func (sel *Selection) IsNamed(r Run) bool { return sel.Named[absolute(r.Dir)] }

// All selects all runs of the store. A store without runs gives a *NoRunsError.
func (s *Store) All() (*Selection, error) {
	runs, damaged, err := s.Runs()
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 && len(damaged) == 0 {
		return nil, noRuns(s.dir)
	}
	sel := &Selection{Runs: runs, Damaged: damaged, all: map[string][]Run{s.dir: slices.Clone(runs)}}
	suites, damagedSuites, _ := s.Suites()
	sel.Damaged = append(sel.Damaged, damagedSuites...)
	if len(suites) == 1 && len(damagedSuites) == 0 {
		sel.Suite = suites[0]
		// A resumed suite made its runs in another order than its plan.
		at := map[string]int{}
		for i, id := range sel.Suite.RunIDs() {
			at[id] = i + 1
		}
		slices.SortStableFunc(sel.Runs, func(a, b Run) int {
			return cmp.Compare(cmp.Or(at[a.ID], math.MaxInt), cmp.Or(at[b.ID], math.MaxInt))
		})
	}
	return sel, nil
}

func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		path = a
	}
	if r, err := filepath.EvalSymlinks(path); err == nil {
		path = r
	}
	return path
}

// newest fills sel with the newest suite's runs, or with the newest run if that is newer than every suite.
func (s *Store) newest(sel *Selection) error {
	runs, damaged, err := s.Runs()
	if err != nil {
		return err
	}
	sel.Damaged = damaged
	switch {
	case len(runs) == 0 && len(damaged) > 0:
		return UnreadableError{damaged[0]}
	case len(runs) == 0:
		return noRuns(s.dir)
	}
	suites, damagedSuites, err := s.Suites()
	if err != nil {
		return err
	}
	damaged = append(damaged, damagedSuites...)
	sel.Damaged = damaged
	runs = Asked(runs)
	last := runs[len(runs)-1]
	// A trial of a search does not count as the newest run, unless all runs are trials.
	for _, r := range slices.Backward(runs) {
		if ref := r.Manifest.Suite; ref == nil || !ref.Search {
			last = r
			break
		}
	}
	for _, d := range damagedSuites {
		if ref := last.Manifest.Suite; ref != nil && ref.ID == d.Suite { // the suite's document says which of its runs count
			return NewestUnknownError{d}
		}
	}
	if len(suites) > 0 {
		suite := suites[len(suites)-1]
		inSuite := last.Manifest.Suite != nil && last.Manifest.Suite.ID == suite.ID
		if found := s.take(sel, suite, runs); found && (inSuite || !last.Manifest.Start.After(suite.Created)) {
			return nil
		}
	}
	what := "the newest"
	switch newest := runs[len(runs)-1].Manifest.Suite; {
	case newest == nil || !newest.Search:
	case last.ID == runs[len(runs)-1].ID:
		what = "the newest trial of a search"
	default:
		what = "the newest that is no trial of a search"
	}
	*sel = Selection{Damaged: damaged, Runs: []Run{last}, Chosen: fmt.Sprintf("run %s, %s in %s", last.ID, what, s.dir)}
	return nil
}

// take fills sel with a suite's runs, in the order of the suite's plan, and reports whether the suite has any runs.
func (s *Store) take(sel *Selection, suite *Suite, runs []Run) bool {
	byID := make(map[string]Run, len(runs))
	for _, r := range runs {
		byID[r.ID] = r
	}
	for _, id := range suite.RunIDs() {
		if r, ok := byID[id]; ok {
			sel.Runs = append(sel.Runs, r)
		} else {
			sel.Missing = append(sel.Missing, id)
		}
	}
	sel.Suite = suite
	sel.Chosen = fmt.Sprintf("suite %s (%s), %s, the newest in %s", suite.Name, suite.ID,
		units.Plural(len(sel.Runs), "run", "runs"), s.dir)
	return len(sel.Runs) > 0
}
