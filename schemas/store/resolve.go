package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	// Missing lists runs that the suite names and the store does not have.
	Missing []string
}

// ErrNoRuns says that a store is empty.
var ErrNoRuns = errors.New("no runs")

// A NotFoundError says that an argument names no run, or more than one.
type NotFoundError struct {
	Arg   string
	Store string
	Near  []string // what might have been meant; for an ambiguous prefix, every match
	Many  bool     // the argument is a prefix of several
}

func (e *NotFoundError) Error() string {
	if e.Many {
		return fmt.Sprintf("%q is the beginning of %d run ids in %s: %s", e.Arg, len(e.Near), e.Store, list(e.Near))
	}
	msg := fmt.Sprintf("no run %q in %s", e.Arg, e.Store)
	if len(e.Near) > 0 {
		msg += ": did you mean " + list(e.Near) + "?"
	}
	return msg
}

func list(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Resolve finds the runs that the arguments name: a run folder, a store (all its runs), a run id, a unique prefix of
// one, or a run's name (the newest of that name). Ids win over names and names over prefixes, so that a run called
// "2026" can be named. With no argument it takes the newest suite, or the newest run where that is newer.
func (s *Store) Resolve(args []string) (*Selection, error) {
	sel := new(Selection)
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
	var own []Run // of this store, read once and only where an argument needs it
	for _, arg := range args {
		if isRun(arg) {
			r, err := openRun(arg)
			if err != nil {
				return nil, Damaged{arg, err}
			}
			add(r)
			continue
		}
		if own == nil {
			runs, _, err := s.Runs()
			if err != nil {
				return nil, err
			}
			own = runs
		}
		r, err := find(own, arg)
		if err == nil {
			add(r)
			continue
		}
		// A folder comes last: a run's name must not change its meaning where a folder of that name appears.
		if st, statErr := os.Stat(arg); statErr == nil && st.IsDir() {
			other := Open(arg)
			runs, damaged, err := other.Runs()
			if err != nil {
				return nil, err
			}
			if len(runs) == 0 && len(damaged) == 0 {
				return nil, fmt.Errorf("%w in %s", ErrNoRuns, arg)
			}
			sel.Damaged = append(sel.Damaged, damaged...)
			if suites, _, _ := other.Suites(); len(suites) == 1 && len(args) == 1 {
				sel.Suite = suites[0]
			}
			add(runs...)
			continue
		}
		err.Store = s.dir
		return nil, err
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

// find looks arg up among runs, which are sorted oldest first.
func find(runs []Run, arg string) (Run, *NotFoundError) {
	var named, prefixed []Run
	for _, r := range runs {
		switch {
		case r.ID == arg:
			return r, nil
		case r.Manifest.Name == arg:
			named = append(named, r)
		case arg != "" && strings.HasPrefix(r.ID, arg):
			prefixed = append(prefixed, r)
		}
	}
	switch {
	case len(named) > 0:
		return named[len(named)-1], nil
	case len(prefixed) == 1:
		return prefixed[0], nil
	case len(prefixed) > 1:
		e := &NotFoundError{Arg: arg, Many: true}
		for _, r := range prefixed {
			e.Near = append(e.Near, r.ID)
		}
		return Run{}, e
	}
	return Run{}, &NotFoundError{Arg: arg, Near: near(runs, arg)}
}

// newest fills sel with the newest suite's runs, or with the newest run if that is newer than every suite.
func (s *Store) newest(sel *Selection) error {
	runs, damaged, err := s.Runs()
	if err != nil {
		return err
	}
	sel.Damaged = damaged
	if len(runs) == 0 {
		return fmt.Errorf("%w in %s", ErrNoRuns, s.dir)
	}
	suites, _, err := s.Suites()
	if err != nil {
		return err
	}
	last := runs[len(runs)-1]
	if len(suites) > 0 {
		suite := suites[len(suites)-1]
		inSuite := last.Manifest.Suite != nil && last.Manifest.Suite.ID == suite.ID
		if found := s.take(sel, suite, runs); found && (inSuite || !last.Manifest.Start.After(suite.Created)) {
			return nil
		}
	}
	*sel = Selection{Damaged: damaged, Runs: []Run{last}, Chosen: fmt.Sprintf("run %s, the newest in %s", last.ID, s.dir)}
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
