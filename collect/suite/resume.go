package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// orphanTime limits the wait for a run whose collector was killed. The run's supervisor ends the remaining processes
// within that time.
const orphanTime = 45 * time.Second

// ResumeOptions say which suite to continue, and how.
type ResumeOptions struct {
	ID          string           // id of the suite; "" means the newest with the same name
	Machine     *collect.Machine // machine for the runs that are still to be made
	RetryFailed bool             // makes failed runs again
	LookOnly    bool             // only looks, and waits for no run
	// Waiting is called once for a run that is still being recorded. It may be nil.
	Waiting func(runID string)
}

// A Resumption says which runs of a suite a store has, and which are still to be made.
type Resumption struct {
	Suite *store.Suite // the document with these runs, which is not written yet
	Todo  []Task
	Runs  []store.Run // all runs of the suite, oldest first

	// Begins is true if the store has no part of the suite, whose document is not written yet.
	Begins bool

	ledger    *ledger
	suiteLock func() // nil if not locked
	nameLock  func() // keeps others from beginning the same suite before the document is written; nil if not locked
	// missing are folders that did not exist before the suite began.
	missing []string
}

// Close releases the locks, so that other processes can continue the suite. [Suite.Run] calls it at its end.
func (r *Resumption) Close() {
	if r == nil {
		return
	}
	for _, unlock := range []func(){r.suiteLock, r.nameLock} {
		if unlock != nil {
			unlock()
		}
	}
	for _, folder := range r.missing {
		_ = os.Remove(folder) // a folder that is not empty stays
	}
}

// Done returns how many runs of an experiment have been made, and how many of these did not end well.
func (r *Resumption) Done(x *Experiment) (done, unwell int) {
	for i := range x.Repeats {
		if run, ok := r.ledger.counts[slot{x.Key, i}]; ok && rank(run) > cutShort {
			if done++; rank(run) == failed {
				unwell++
			}
		}
	}
	return done, unwell
}

// todo returns how many runs of an experiment are still to be made. again says how the earlier runs ended that are made
// again.
func (r *Resumption) todo(x *Experiment) (n int, again []string) {
	again = []string{}
	for _, t := range r.Todo {
		if t.Key != x.Key {
			continue
		}
		n++
		if run, ok := r.ledger.counts[slot{t.Key, t.Repetition}]; ok {
			again = append(again, run.Manifest.Status)
		}
	}
	return n, again
}

// Resume determines which runs of the suite a store has. An experiment is identified by its content and its repetition,
// so the file may have been reordered or extended. Experiments removed from the file keep their runs. The folders of
// runs decide, rather than the suite's document, since a killed suite may have made a run that the document does not
// list.
//
//   - A run that ended well is done, whatever signal it was sent.
//   - A run that failed by itself is done too. With RetryFailed it is made again.
//   - A run that an interruption ended, or whose collector was killed, is made again.
//
// Resume waits for a run whose collector was killed and whose supervisor is still ending it. If the store has no suite
// with that name, Resume begins one. If two processes begin at the same time, the second continues the first one's
// suite. With LookOnly, Resume waits for no run, and returns nil if the store has no suite with that name. Without
// LookOnly, Resume returns an error if another dpsight process is running the suite. The result keeps other processes
// out until [Suite.Run] ends or Close is called.
func (s *Suite) Resume(st *store.Store, o ResumeOptions) (*Resumption, error) {
	if o.LookOnly {
		doc, err := s.earlier(st, o)
		if err != nil || doc == nil {
			return nil, unreadable(st, err)
		}
		r := &Resumption{}
		return r, unreadable(st, r.look(s, st, doc, o))
	}
	if err := st.SweepSuites(collect.SafeName(s.Name)); err != nil {
		return nil, unreadable(st, err)
	}
	doc, err := s.earlier(st, o)
	if err == nil && doc == nil {
		r := s.begin(st)
		if r.nameLock, err = st.LockSuiteName(collect.SafeName(s.Name)); err != nil {
			r.Close()
			return nil, collect.StoreError(st.Dir(), err)
		}
		// Another process, which held the lock before, may have begun the suite.
		if doc, err = s.earlier(st, o); err == nil && doc == nil {
			return r, nil
		}
		r.Close()
	}
	if err != nil {
		return nil, unreadable(st, err)
	}
	r := &Resumption{}
	if r.suiteLock, err = lock(st, doc.ID); err != nil {
		return nil, unreadable(st, err)
	}
	// Another process, which held the lock before, may have rewritten the document, or removed it because no run could
	// be made.
	if _, err := os.Stat(st.SuiteFile(doc.ID)); errors.Is(err, fs.ErrNotExist) {
		r.Close()
		return s.Resume(st, o)
	}
	o.ID = doc.ID
	if doc, err = s.earlier(st, o); err == nil {
		err = r.look(s, st, doc, o)
	}
	if err != nil {
		r.Close()
		return nil, unreadable(st, err)
	}
	return r, nil
}

// begin plans a suite that the store does not have.
func (s *Suite) begin(st *store.Store) *Resumption {
	created := time.Now()
	doc := s.Document(collect.NewRunID(created, s.Name), created)
	r := &Resumption{Suite: doc, Todo: s.Tasks(), Begins: true, ledger: newLedger(doc)}
	for _, folder := range []string{filepath.Dir(st.SuiteFile(doc.ID)), st.Dir()} {
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			r.missing = append(r.missing, folder)
		}
	}
	return r
}

// announce writes the document of a suite that begins or continues. From then on other processes find the suite, and
// its lock keeps them from making its runs.
func (r *Resumption) announce(st *store.Store) error {
	if r.Begins {
		var err error
		if r.suiteLock, err = st.LockSuite(r.Suite.ID); err != nil {
			return err
		}
	}
	if err := st.WriteSuite(r.Suite); err != nil {
		return err
	}
	if r.nameLock != nil {
		r.nameLock()
	}
	return nil
}

// lock locks a suite, and returns an error if another dpsight process is working on the suite.
func lock(st *store.Store, id string) (unlock func(), err error) {
	unlock, err = st.LockSuite(id)
	if errors.Is(err, schemas.ErrLocked) {
		return nil, &collect.UsageError{Problem: fmt.Sprintf("another dpsight is recording suite %s", id),
			Advice: "wait for the other dpsight to end, or stop it; this one changed nothing"}
	}
	return unlock, err
}

// look determines which runs of the suite have been made, and which are still to be made.
func (r *Resumption) look(s *Suite, st *store.Store, doc *store.Suite, o ResumeOptions) error {
	runs, err := settled(st, doc.ID, o)
	if err != nil {
		return err
	}
	whole := *s
	if s.whole != nil {
		whole.Experiments = s.whole
	}
	plan := whole.Document(doc.ID, doc.Created)
	plan.Experiments = slices.DeleteFunc(plan.Experiments, func(x store.Experiment) bool {
		return doc.Experiment(x.Key) == nil &&
			!slices.ContainsFunc(s.Experiments, func(y *Experiment) bool { return x.Key == y.Key })
	})
	for _, x := range doc.Experiments { // experiments that are no longer in the file
		if plan.Experiment(x.Key) == nil {
			x.RunIDs, x.Superseded = []string{}, nil
			plan.Experiments = append(plan.Experiments, x)
		}
	}
	r.Suite, r.Runs, r.ledger = plan, runs, newLedger(plan)
	for _, run := range runs {
		r.ledger.enter(run)
	}
	enough := failed
	if o.RetryFailed {
		enough = wentWell
	}
	for _, t := range s.Tasks() {
		if run, ok := r.ledger.counts[slot{t.Key, t.Repetition}]; !ok || rank(run) < enough {
			r.Todo = append(r.Todo, t)
		}
	}
	return nil
}

// unreadable adds the store's name to an error of the file system.
func unreadable(st *store.Store, err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	return &collect.UsageError{Problem: fmt.Sprintf("the store %s cannot be read: %v", st.Dir(), path.Err),
		Advice: "name another folder with --store"}
}

// ResumeNote says what Resume found in the store.
func (s *Suite) ResumeNote(r *Resumption, dir string) string {
	if r.Begins {
		return fmt.Sprintf("no suite %s to continue in %s: starting a new one", s.Name, dir)
	}
	all := len(s.Tasks())
	left := fmt.Sprintf("%d of %d experiments are left to do", len(r.Todo), all)
	switch {
	case len(r.Todo) == 0 && all == 1:
		left = "its one experiment is done"
	case len(r.Todo) == 0:
		left = fmt.Sprintf("all %d experiments are done", all)
	case all == 1:
		left = "its one experiment is left to do"
	case len(r.Todo) == 1:
		left = fmt.Sprintf("1 of %d experiments is left to do", all)
	}
	return fmt.Sprintf("continuing suite %s: %s", r.Suite.ID, left)
}

// earlier finds the suite to resume. A predicted suite is not continued on a GPU, nor a measured suite on the phantom
// GPU.
func (s *Suite) earlier(st *store.Store, o ResumeOptions) (*store.Suite, error) {
	suites, damaged, err := st.Suites()
	if err != nil {
		return nil, err
	}
	for _, d := range damaged {
		if d.Suite == o.ID || o.ID == "" && store.SuiteName(d.Suite) == s.Name {
			return nil, d
		}
	}
	runs, _, err := st.Runs()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, doc := range slices.Backward(suites) {
		if o.ID == "" && doc.Name == s.Name && s.fits(doc, runs, o.Machine) == "" {
			return doc, nil
		}
		if o.ID != "" && doc.ID == o.ID {
			if why := s.fits(doc, runs, o.Machine); why != "" {
				return nil, &collect.UsageError{Problem: fmt.Sprintf("cannot continue suite %s: %s", o.ID, why),
					Advice: "choose the same --device and --gpu-memory"}
			}
			return doc, nil
		}
		names = append(names, doc.ID)
	}
	if o.ID != "" {
		hint := "the store has no suites"
		if len(names) > 0 {
			hint = "the store's newest suite is " + names[0]
		}
		return nil, &collect.UsageError{Problem: fmt.Sprintf("no suite %s in %s", o.ID, st.Dir()), Advice: hint}
	}
	return nil, nil
}

func (s *Suite) fits(doc *store.Suite, runs []store.Run, m *collect.Machine) (why string) {
	source, profile := m.Source()
	for _, r := range runs {
		if r.Manifest.Suite == nil || r.Manifest.Suite.ID != doc.ID {
			continue
		}
		if r.Manifest.Source != source {
			return fmt.Sprintf("the suite's runs are %s, and the new runs would be %s", r.Manifest.Source, source)
		}
		if p := r.Manifest.Profile; p != nil && profile != nil && *p != *profile {
			return fmt.Sprintf("the suite's runs are predicted for %s, and the new runs would be for %s", *p, *profile)
		}
		if f := r.Manifest.Phantom; f != nil && m.Predicted && f.MemoryBytes != m.ProcessBytes() {
			return fmt.Sprintf("the suite's runs are predicted for a memory of %d bytes, and the new runs would be for %d",
				f.MemoryBytes, m.ProcessBytes())
		}
	}
	return ""
}

// settled waits until no run of a suite is being recorded, and returns the suite's runs, oldest first.
func settled(st *store.Store, id string, o ResumeOptions) ([]store.Run, error) {
	waiting := o.Waiting
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		all, _, err := st.Runs()
		if err != nil {
			return nil, err
		}
		var runs []store.Run
		busy := ""
		for _, r := range all {
			if r.Manifest.Suite == nil || r.Manifest.Suite.ID != id {
				continue
			}
			runs = append(runs, r)
			if r.Manifest.End == nil && collect.Running(r.Dir) {
				busy = r.ID
			}
		}
		switch {
		case busy == "" || o.LookOnly:
			return runs, nil
		case time.Since(begin) > orphanTime:
			return nil, &collect.UsageError{Problem: fmt.Sprintf("run %s of the suite is still being recorded", busy),
				Advice: "another dpsight is recording this suite: wait for it, or stop it"}
		case waiting != nil:
			waiting(busy)
			waiting = nil
		}
	}
}
