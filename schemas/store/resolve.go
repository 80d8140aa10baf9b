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
)

// A Selection is what RUN arguments stand for.
type Selection struct {
	Runs []Run // in the order named, each once
	// Chosen says what was taken because nothing was named ("suite headline (20261121T…), 6 runs"); else empty.
	Chosen string
	// Suite is set where a whole suite was taken, or a store with one suite only.
	Suite *Suite
	// Damaged lists the run folders of a store so named that cannot be read; they are no error.
	Damaged []Damaged
	// Named are the folders of the runs that an argument of their own stood for, by id, name or folder.
	Named map[string]bool
	// Missing lists runs that the suite names and the store does not have.
	Missing []string
	// Newest lists, for each name that several runs of the store have, which one was taken.
	Newest []Newest

	args int // how many arguments it was resolved from
}

// Only is the selection with some of its runs, as if the others had not been selected.
func (sel *Selection) Only(runs []Run) *Selection {
	only := *sel
	only.Runs = runs
	return &only
}

// Newest is a name that stood for the newest of several runs.
type Newest struct {
	Name  string
	RunID string
	Of    int  // runs of that name
	Bare  bool // newer ones are bare repeats of the same experiment
}

func (n Newest) String() string {
	which := "the newest"
	if n.Bare {
		which = "the newest that is not bare"
	}
	return fmt.Sprintf("%d runs are called %s: taking %s, %s", n.Of, n.Name, which, n.RunID)
}

// ErrNoRuns says that a store is empty.
var ErrNoRuns = errors.New("no runs")

// A NoRunsError is [ErrNoRuns] of a folder, with the folders just below it that do hold runs.
type NoRunsError struct {
	Dir    string
	Absent bool // there is no such folder
	Below  []string
}

func (e *NoRunsError) Error() string {
	if e.Absent {
		return fmt.Sprintf("no runs in %s: there is no such folder", e.Dir)
	}
	if strings.HasSuffix(e.Dir, ".") { // "no runs in .": no sentence
		return "no runs in " + absolute(e.Dir)
	}
	return "no runs in " + e.Dir
}

func (e *NoRunsError) Unwrap() error { return ErrNoRuns }

// An UnreadableError is a store's first damaged run folder where it has no others.
type UnreadableError struct{ Damaged }

func (e UnreadableError) Error() string { return "no run can be read: " + e.Damaged.Error() }

func (e UnreadableError) Unwrap() error { return e.Damaged }

// noRuns looks for what may have been meant where a folder holds no runs.
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
	Near  []string // what might have been meant; for an ambiguous prefix, every match
	Many  bool     // the argument is a prefix of several
	File  bool     // there is a file of that name
	// Absent says that there is no such store, Unread which of its run folders could not be read: the run may be one of
	// them.
	Absent bool
	Unread []string
}

func (e *NotFoundError) Error() string {
	if e.Many {
		return fmt.Sprintf("%q is the beginning of %d run ids in %s: %s", e.Arg, len(e.Near), e.Store,
			schemas.Shortlist(e.Near, fewRuns))
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

// Resolve finds the runs that the arguments name: a run folder, a store (all its runs), a run id, a unique prefix of
// one, or a run's name (the newest of that name; of repeats the newest that is not bare). Ids win over names and names
// over prefixes, so that a run called "2026" can be named. With no argument it takes the newest suite, or the newest
// run where that is newer.
func (s *Store) Resolve(args []string) (*Selection, error) { return s.resolve(args, false) }

// ResolveEach is [Store.Resolve] for a list of runs: a name stands for all that have it, and no argument for the store.
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
	seen := map[string]bool{}
	add := func(runs ...Run) {
		for _, r := range runs {
			if key := absolute(r.Dir); !seen[key] {
				seen[key] = true
				sel.Runs = append(sel.Runs, r)
			}
		}
	}
	named := func(r Run) {
		add(r)
		if sel.Named == nil {
			sel.Named = map[string]bool{}
		}
		sel.Named[absolute(r.Dir)] = true
	}
	var own []Run // of this store, read once and only where an argument needs it
	var damaged []Damaged
	for _, arg := range args {
		if schemas.IsRun(arg) {
			r, err := OpenRun(arg)
			if err != nil {
				return nil, Damaged{arg, err}
			}
			named(r)
			continue
		}
		if own == nil {
			var err error
			if own, damaged, err = s.Runs(); err != nil {
				return nil, err
			}
		}
		r, namesakes, err := find(own, arg)
		if err == nil && each && namesakes > 1 {
			for _, r := range own {
				if r.Manifest.Name == arg {
					named(r)
				}
			}
			continue
		}
		if err == nil {
			full := r
			if r.ID != arg && r.Manifest.Name == arg {
				full = recorded(own, r)
			}
			if namesakes > 1 {
				sel.Newest = append(sel.Newest, Newest{arg, full.ID, namesakes, full.ID != r.ID})
			}
			named(full)
			continue
		}
		// A folder comes last: a run's name must not change its meaning where a folder of that name appears.
		st, statErr := os.Stat(arg)
		if statErr != nil || !st.IsDir() {
			err.Store, err.File = s.dir, statErr == nil
			_, missing := os.Stat(s.dir)
			err.Absent = errors.Is(missing, fs.ErrNotExist)
			for _, d := range damaged {
				err.Unread = append(err.Unread, filepath.Base(d.Dir))
			}
			return nil, err
		}
		all, allErr := Open(arg).All()
		if allErr != nil {
			return nil, allErr
		}
		sel.Damaged = append(sel.Damaged, all.Damaged...)
		if len(args) == 1 {
			sel.Suite = all.Suite
		}
		add(all.Runs...)
	}
	return sel, nil
}

// IsNamed reports whether an argument stood for the run alone, and not for it among all of a store.
func (sel *Selection) IsNamed(r Run) bool { return sel.Named[absolute(r.Dir)] }

// All takes all runs of the store; one that has none gives a *NoRunsError.
func (s *Store) All() (*Selection, error) {
	runs, damaged, err := s.Runs()
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 && len(damaged) == 0 {
		return nil, noRuns(s.dir)
	}
	sel := &Selection{Runs: runs, Damaged: damaged}
	if suites, _, _ := s.Suites(); len(suites) == 1 {
		sel.Suite = suites[0]
		// A suite that was resumed made its runs in another order than that of its plan.
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

// find looks arg up among runs, which are sorted oldest first. Where it is a name it also says of how many.
func find(runs []Run, arg string) (found Run, namesakes int, err *NotFoundError) {
	var named, prefixed []Run
	for _, r := range runs {
		switch {
		case r.ID == arg:
			return r, 1, nil
		case r.Manifest.Name == arg:
			named = append(named, r)
		case arg != "" && strings.HasPrefix(r.ID, arg):
			prefixed = append(prefixed, r)
		}
	}
	switch {
	case len(named) > 0:
		return named[len(named)-1], len(named), nil
	case len(prefixed) == 1:
		return prefixed[0], 1, nil
	case len(prefixed) > 1:
		e := &NotFoundError{Arg: arg, Many: true}
		for _, r := range prefixed {
			e.Near = append(e.Near, r.ID)
		}
		return Run{}, 0, e
	}
	return Run{}, 0, &NotFoundError{Arg: arg, Near: near(runs, arg)}
}

// recorded is what stands for a run that was found by its name: the run itself or, where it is a bare repeat of an
// experiment that its suite recorded once, the newest of these.
func recorded(runs []Run, r Run) Run {
	m := r.Manifest
	if !m.Bare || m.Suite == nil {
		return r
	}
	for _, o := range slices.Backward(runs) {
		if s := o.Manifest.Suite; s != nil && s.ID == m.Suite.ID && o.Manifest.Name == m.Name && !o.Manifest.Bare {
			return o
		}
	}
	return r
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
	suites, _, err := s.Suites()
	if err != nil {
		return err
	}
	last := runs[len(runs)-1]
	// a trial of a search is not what a user made last, unless there is nothing else
	for _, r := range slices.Backward(runs) {
		if ref := r.Manifest.Suite; ref == nil || !ref.Search {
			last = r
			break
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

// take fills sel with a suite's runs in the order of its plan and reports whether it has any.
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
	sel.Chosen = fmt.Sprintf("suite %s (%s), %d runs, the newest in %s", suite.Name, suite.ID, len(sel.Runs), s.dir)
	return len(sel.Runs) > 0
}
