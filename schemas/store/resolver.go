package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// A resolver adds the runs for which arguments stand to a selection, one argument after another.
type resolver struct {
	store   *Store
	each    bool // a name stands for all runs with that name
	sel     *Selection
	seen    map[string]bool // folders of the selected runs
	runs    []Run           // runs of the store, read once and only if an argument needs them
	damaged []Damaged
}

func (r *resolver) take(arg string) error {
	if schemas.IsRun(arg) {
		run, err := OpenRun(arg)
		if err != nil {
			return Damaged{Dir: arg, Err: err}
		}
		r.addNamed(run)
		return nil
	}
	if r.runs == nil {
		var err error
		if r.runs, r.damaged, err = r.store.Runs(); err != nil {
			return err
		}
	}
	run, namesakes, notFound := find(r.runs, arg)
	if notFound == nil {
		r.takeFound(arg, run, namesakes)
		return nil
	}
	// A folder is tried last, so that a run's name keeps its meaning when a folder with the same name appears.
	st, err := os.Stat(arg)
	if err == nil && st.IsDir() {
		return r.takeStore(arg)
	}
	if suite, dir := suiteAt(arg); suite != nil {
		return r.takeSuiteOf(suite, dir)
	}
	suites, _, _ := r.store.Suites()
	for _, suite := range slices.Backward(suites) {
		if suite.Name == arg || suite.ID == arg {
			return r.takeSuite(suite)
		}
		if !notFound.Many && !slices.Contains(notFound.Near, suite.Name) {
			notFound.Near = append(notFound.Near, near([]string{suite.Name}, arg)...)
		}
	}
	notFound.Store, notFound.File = r.store.dir, err == nil
	_, missing := os.Stat(r.store.dir)
	notFound.Absent = errors.Is(missing, fs.ErrNotExist)
	for _, d := range r.damaged {
		notFound.Unread = append(notFound.Unread, filepath.Base(d.Dir))
	}
	return notFound
}

// takeFound adds the run that [find] returned for an argument. If several runs have the argument as their name,
// takeFound adds the run or the runs for which the name stands.
func (r *resolver) takeFound(arg string, run Run, namesakes int) {
	if r.each && run.ID != arg && run.Manifest.Name == arg {
		for _, run := range r.runs {
			if run.Manifest.Name == arg {
				r.addNamed(run)
			}
		}
		return
	}
	full := run
	if run.ID != arg && run.Manifest.Name == arg {
		full = recorded(r.runs, run)
	}
	if namesakes > 1 {
		r.sayNewest(Newest{Name: arg, RunID: full.ID, Of: namesakes, Bare: full.ID != run.ID}, full)
	}
	r.addNamed(full)
}

// sayNewest adds to the selection's Newest, unless it is already there, a name for which one of several runs was
// selected.
func (r *resolver) sayNewest(n Newest, taken Run) {
	if slices.ContainsFunc(r.sel.Newest, func(o Newest) bool { return o.Name == n.Name }) {
		return
	}
	for _, run := range r.runs {
		if run.Manifest.Name == n.Name && gpuOf(run) != gpuOf(taken) && !slices.Contains(n.Others, gpuOf(run)) {
			n.GPU, n.Others = gpuOf(taken), append(n.Others, gpuOf(run))
		}
	}
	r.sel.Newest = append(r.sel.Newest, n)
}

func gpuOf(r Run) string {
	if len(r.Manifest.GPUs) == 0 {
		return "no known GPU"
	}
	return r.Manifest.GPUs[0].Name
}

// takeStore adds all runs of another store to the selection.
func (r *resolver) takeStore(dir string) error {
	all, err := (&Store{dir: dir, indexed: r.store.indexed}).All()
	if err != nil {
		return err
	}
	r.sel.Damaged = append(r.sel.Damaged, all.Damaged...)
	if r.sel.args == 1 {
		r.sel.Suite = all.Suite
	}
	r.addAll(all.Runs)
	return nil
}

// suiteAt returns the suite whose document is at a path, with the folder of its store; nil if the path is no suite's
// document.
func suiteAt(path string) (*Suite, string) {
	dir := filepath.Dir(absolute(path))
	if filepath.Base(dir) != suitesFolder || filepath.Ext(path) != ".json" {
		return nil, ""
	}
	suite, err := readSuite(path)
	if err != nil {
		return nil, ""
	}
	return suite, filepath.Dir(dir)
}

// takeSuiteOf adds the runs of a suite in the store at dir, which may be another store.
func (r *resolver) takeSuiteOf(suite *Suite, dir string) error {
	if absolute(r.store.dir) == dir {
		return r.takeSuite(suite)
	}
	other := &resolver{store: &Store{dir: dir, indexed: r.store.indexed}, sel: r.sel, seen: r.seen}
	var err error
	if other.runs, other.damaged, err = other.store.Runs(); err != nil {
		return err
	}
	return other.takeSuite(suite)
}

// takeSuite adds the runs of a suite of the resolver's store.
func (r *resolver) takeSuite(suite *Suite) error {
	var of Selection
	if !r.store.take(&of, suite, r.runs) {
		return &NoRunsError{Dir: "suite " + suite.ID + " of " + r.store.dir}
	}
	r.sel.Missing = append(r.sel.Missing, of.Missing...)
	if r.sel.args == 1 {
		r.sel.Suite, r.sel.Chosen = of.Suite, of.Chosen
	}
	r.addAll(of.Runs)
	return nil
}

// addNamed adds a run that an argument named singly.
func (r *resolver) addNamed(run Run) {
	r.add(run)
	if r.sel.Named == nil {
		r.sel.Named = map[string]bool{}
	}
	r.sel.Named[absolute(run.Dir)] = true
}

// add adds a run to the selection, unless the selection has the run already.
func (r *resolver) add(run Run) { r.addAs(run, absolute(run.Dir)) }

// addAll adds the runs of a store. addAll resolves links in the store's path once, and not for each of thousands of
// runs. Only for a run folder that is itself a link, it resolves the run folder's path.
func (r *resolver) addAll(runs []Run) {
	stores := map[string]string{}
	for _, run := range runs {
		if run.linked {
			r.add(run)
			continue
		}
		dir, folder := filepath.Split(run.Dir)
		if _, ok := stores[dir]; !ok {
			stores[dir] = absolute(dir)
		}
		r.addAs(run, filepath.Join(stores[dir], folder))
	}
}

func (r *resolver) addAs(run Run, key string) {
	if !r.seen[key] {
		r.seen[key] = true
		r.sel.Runs = append(r.sel.Runs, run)
	}
}

// find returns the run among runs that arg names, by id, name or prefix of an id. runs are sorted oldest first. If arg
// is a name, namesakes is how many runs have that name.
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
	named = Asked(named)
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
	var words []string
	for _, r := range runs {
		words = append(words, r.Manifest.Name, r.ID)
	}
	return Run{}, 0, &NotFoundError{Arg: arg, Near: near(words, arg)}
}

// Asked leaves out the runs that a prediction made only to find the range of its peak, with garbage collected at other
// moments. The prediction's main run stays.
func Asked(runs []Run) []Run {
	bounds := map[string]bool{}
	for _, r := range runs {
		if p := r.Manifest.Phantom; p != nil {
			for _, c := range p.Collections {
				bounds[c.RunID] = true
			}
		}
	}
	if len(bounds) == 0 {
		return runs
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return bounds[r.ID] })
}

// recorded returns the run to select when run r was found by its name. If r is a bare repeat of an experiment that its
// suite also recorded in full, recorded returns the newest full repeat. In all other cases recorded returns r itself.
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
