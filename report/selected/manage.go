package selected

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
	"github.com/dpsight/dpsight/schemas/units"
)

// List returns the table of the runs that a command names. A name stands for all runs with that name.
func (s *Source) List(names []string) (doc analyze.RunsDocument, err error) {
	r, err := s.SelectEach(names)
	if err != nil {
		return doc, err
	}
	if len(r.Runs) == 1 { // for several runs, the note was already printed
		r.WarnPending()
	}
	return r.List()
}

// selectEvery does what [Source.SelectEach] does, and notes which names stand for several runs. A user who changes or
// removes runs by name must know that.
func (s *Source) selectEvery(names []string) (*Runs, error) {
	r, err := s.SelectEach(names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		n := 0
		for _, run := range r.Runs {
			if run.Manifest.Name == name && run.ID != name {
				n++
			}
		}
		if n > 1 {
			s.Say(fmt.Sprintf("%d runs are called %s: all of them; an id names one", n, name))
		}
	}
	return r, nil
}

// Tag adds tags to the runs with a name and removes others, and prints how many runs changed.
func (s *Source) Tag(name string, add, remove []string) error {
	for _, tag := range slices.Concat(add, remove) {
		if err := schemas.CheckTag(tag); err != nil {
			return err
		}
	}
	r, err := s.selectEvery([]string{name})
	if err != nil {
		return err
	}
	changed := 0
	for _, run := range r.Runs {
		did, err := schemas.ChangeTags(run.Dir, add, remove)
		if err != nil {
			return fmt.Errorf("run %s: %w", run.ID, err)
		}
		if did {
			changed++
		}
	}
	s.Say(fmt.Sprintf("tags of %d of %s changed", changed, units.Plural(len(r.Runs), "run", "runs")))
	return nil
}

// Usage returns the size of the selected runs' files by kind, the largest run first.
func (s *Source) Usage(names []string) (doc report.UsageDocument, err error) {
	r, err := s.selectEvery(names)
	if err != nil {
		return doc, err
	}
	return r.usage()
}

func (r *Runs) usage() (doc report.UsageDocument, err error) {
	runs := make([]report.UsageRun, 0, len(r.Runs))
	for _, run := range r.Runs {
		bytes, err := run.Usage()
		if err != nil {
			return doc, err
		}
		runs = append(runs, report.UsageRun{RunID: run.ID, Name: run.Manifest.Name, Kinds: bytes})
	}
	return report.NewUsageDocument(runs), nil
}

// Show returns everything that is known of each selected run without its tables.
func (s *Source) Show(names []string) (doc report.ShownDocument, err error) {
	r, err := s.selectEvery(names)
	if err != nil {
		return doc, err
	}
	list, err := r.List()
	if err != nil {
		return doc, err
	}
	refs, err := store.OpenIndexed(s.Store).References(r.Runs)
	if err != nil {
		return doc, err
	}
	usage, err := r.usage()
	if err != nil {
		return doc, err
	}
	doc.Schema = report.ShownSchema
	for i := range list.Runs {
		row := &list.Runs[i]
		k := slices.IndexFunc(r.Runs, func(run store.Run) bool { return run.ID == row.RunID })
		manifest, err := schemas.ReadManifest(r.Runs[k].Dir)
		if err != nil {
			return doc, err
		}
		shown := report.ShownRun{RunsRow: *row, Folder: r.Runs[k].Dir, Manifest: manifest, References: []store.Reference{}}
		for _, u := range usage.Runs {
			if u.RunID == row.RunID {
				shown.Bytes = u.Bytes
			}
		}
		for _, ref := range refs {
			if ref.RunID == row.RunID {
				shown.References = append(shown.References, ref)
			}
		}
		doc.Runs = append(doc.Runs, shown)
	}
	return doc, nil
}

// Remove removes runs, one after another, after the user has confirmed it. confirm's result asked says whether the user
// could be asked. Remove returns an error for a run that is being recorded.
func (s *Source) Remove(names []string, confirm func(question string) (yes, asked bool)) error {
	r, err := s.selectEvery(names)
	if err != nil {
		return err
	}
	for _, run := range r.Runs {
		if run.Manifest.Status == schemas.StatusRunning {
			return schemas.WithHint(fmt.Errorf("run %s is being recorded", run.ID), "end it first")
		}
	}
	usage, err := r.usage()
	if err != nil {
		return err
	}
	refs, err := store.OpenIndexed(s.Store).References(r.Runs)
	if err != nil {
		return err
	}
	for _, note := range report.RemovalNotes(refs) {
		s.Note(note)
	}
	what := report.RemovalWords(r.Runs, usage.Total().Bytes)
	switch yes, asked := confirm("remove " + what); {
	case !asked:
		return schemas.WithHint(fmt.Errorf("remove %s: nobody can be asked", what), "dpsight runs rm --yes does not ask")
	case !yes:
		s.Say("nothing is removed")
		return nil
	}
	for _, run := range r.Runs {
		if err := store.Remove(run); err != nil {
			return err
		}
	}
	s.Say("removed " + what)
	return store.Open(s.Store).SweepRemoved()
}
