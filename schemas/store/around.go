package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// Notes returns notes on which runs were selected if the user named none, or if a name stands for several runs. The
// warnings of Notes say which runs are missing or damaged.
func (sel *Selection) Notes() (notes, warnings []string) {
	for _, n := range sel.Newest {
		notes = append(notes, n.String())
	}
	if sel.Chosen != "" {
		notes = append(notes, "taking "+sel.Chosen)
	}
	return notes, sel.Gaps()
}

// Gaps returns sentences on the runs that are missing from the selection: damaged run folders, and runs of the suite
// that the store does not have.
func (sel *Selection) Gaps() []string {
	var out []string
	for _, d := range sel.Damaged {
		out = append(out, d.Error())
	}
	for _, id := range sel.Missing {
		out = append(out, "run "+id+" of the suite is not in the store")
	}
	return out
}

// Folders returns the folders of the runs.
func Folders(runs []Run) []string {
	var dirs []string
	for _, r := range runs {
		dirs = append(dirs, r.Dir)
	}
	return dirs
}

// storesOf returns the folders of the stores in which runs lie, sorted and without duplicates.
func storesOf(runs []Run) []string {
	var dirs []string
	for _, r := range runs {
		dirs = append(dirs, filepath.Dir(r.Dir))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// Manifests returns the manifests of all runs in the stores of the selected runs.
func (sel *Selection) Manifests() []*schemas.Manifest {
	var out []*schemas.Manifest
	for _, dir := range storesOf(sel.Runs) {
		runs, err := sel.all[dir], error(nil)
		if runs == nil {
			runs, _, err = OpenIndexed(dir).Runs()
		}
		if err == nil {
			for _, r := range runs {
				out = append(out, r.Manifest)
			}
		}
	}
	return out
}

// Others returns the runs in the stores of the selected runs that are not selected and that wanted accepts; a nil
// wanted accepts all. Runs in also count as selected.
func (sel *Selection) Others(wanted func(*schemas.Manifest) bool, also ...Run) []Run {
	shown := slices.Concat(sel.Runs, also)
	selected := map[string]bool{}
	for _, r := range shown {
		selected[r.Dir] = true
	}
	var out []Run
	for _, dir := range storesOf(shown) {
		all, err := OpenIndexed(dir).All()
		if err != nil {
			continue
		}
		for _, r := range all.Runs {
			if !selected[r.Dir] && (wanted == nil || wanted(r.Manifest)) {
				out = append(out, r)
			}
		}
	}
	return out
}

// ResolveOne finds the one run that a name stands for: in the store, or else in the selection among, whose runs may lie
// in other stores. Of several runs in among with the name, ResolveOne takes the last.
func (s *Store) ResolveOne(name string, among *Selection) (*Selection, error) {
	sel, err := s.Resolve([]string{name})
	var missing *NotFoundError
	if errors.As(err, &missing) {
		if r := among.called(name); r != nil {
			return &Selection{Runs: []Run{*r}}, nil
		}
	}
	if err == nil && len(sel.Runs) != 1 {
		return nil, &NotOneError{name, len(sel.Runs)}
	}
	return sel, err
}

// called returns the run with the given id, or the last run with the given name; nil if there is none.
func (sel *Selection) called(name string) (found *Run) {
	for i := range sel.Runs {
		r := &sel.Runs[i]
		if r.ID == name {
			return r
		}
		if r.Manifest.Name == name {
			found = r
		}
	}
	return found
}

// A NotOneError says that a name stands for several runs where only one is allowed.
type NotOneError struct {
	Name string
	Runs int
}

func (e *NotOneError) Error() string {
	return fmt.Sprintf("baseline %q names %d runs, not one", e.Name, e.Runs)
}
