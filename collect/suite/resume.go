package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas/store"
)

// orphanTime bounds the wait for a run whose collector was killed: its supervisor ends what is left of it within that.
const orphanTime = 45 * time.Second

// ResumeOptions says what to go on with.
type ResumeOptions struct {
	ID          string           // of the suite; "" is the newest one of the same name
	Machine     *collect.Machine // that the runs left to make will be on
	RetryFailed bool             // make what failed again
	LookOnly    bool             // wait for nothing
	// Waiting is told of a run that is still being recorded, once. May be nil.
	Waiting func(runID string)
}

// A Resumption is what a store holds of a suite, and what is left to do.
type Resumption struct {
	Suite *store.Suite // the document as it should be, not written yet
	Todo  []Task
	Runs  []store.Run // all of the suite's, oldest first

	ledger *ledger
}

// Done is how many runs of an experiment are made; of these some did not end well.
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

// todo is how many runs of an experiment are left to make; of these some were made before, and ended so.
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

// Resume finds out what of the suite a store holds. An experiment is known by its content and its repetition, so the
// file may have been reordered and extended since; experiments that it lost keep their runs. Run folders decide, not
// the document: a suite that was killed may have made a run that its document does not know.
//
//   - A run that ended well is done, whatever signal it was sent.
//   - A run that failed by itself is done too. With RetryFailed it is made again.
//   - A run that an interruption ended, or whose collector was killed, is made again.
//
// Resume waits for a run that a killed collector left to its supervisor. Without a suite of the name it gives nil.
func (s *Suite) Resume(st *store.Store, o ResumeOptions) (*Resumption, error) {
	if !o.LookOnly {
		if err := st.SweepSuites(collect.SafeName(s.Name)); err != nil {
			return nil, unreadable(st, err)
		}
	}
	doc, err := s.earlier(st, o)
	if err != nil || doc == nil {
		return nil, unreadable(st, err)
	}
	runs, err := settled(st, doc.ID, o)
	if err != nil {
		return nil, unreadable(st, err)
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
	for _, x := range doc.Experiments { // those that the file lost
		if plan.Experiment(x.Key) == nil {
			x.RunIDs, x.Superseded = []string{}, nil
			plan.Experiments = append(plan.Experiments, x)
		}
	}
	r := &Resumption{Suite: plan, Runs: runs, ledger: newLedger(plan)}
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
	return r, nil
}

// unreadable says of an error of the file system which store it is of.
func unreadable(st *store.Store, err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	return &collect.UsageError{Problem: fmt.Sprintf("the store %s cannot be read: %v", st.Dir(), path.Err),
		Advice: "name another folder with --store"}
}

// ResumeNote says what Resume found in a store: nil is nothing.
func (s *Suite) ResumeNote(r *Resumption, dir string) string {
	if r == nil {
		return fmt.Sprintf("no suite %s to go on with in %s: beginning anew", s.Name, dir)
	}
	left := fmt.Sprintf("%d of %d experiments are left to do", len(r.Todo), len(s.Tasks()))
	if len(r.Todo) == 0 {
		left = fmt.Sprintf("all %d experiments are done", len(s.Tasks()))
	}
	return fmt.Sprintf("going on with suite %s: %s", r.Suite.ID, left)
}

// earlier finds the suite to go on with. What is predicted is not gone on with by measuring, nor the other way round.
func (s *Suite) earlier(st *store.Store, o ResumeOptions) (*store.Suite, error) {
	suites, _, err := st.Suites()
	if err != nil {
		return nil, err
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
				return nil, &collect.UsageError{Problem: fmt.Sprintf("suite %s cannot be gone on with: %s", o.ID, why),
					Advice: "choose the same --device and --gpu-memory"}
			}
			return doc, nil
		}
		names = append(names, doc.ID)
	}
	if o.ID != "" {
		hint := "it has no suites"
		if len(names) > 0 {
			hint = "its newest is " + names[0]
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
			return fmt.Sprintf("its runs are %s, and these would be %s", r.Manifest.Source, source)
		}
		if p := r.Manifest.Profile; p != nil && profile != nil && *p != *profile {
			return fmt.Sprintf("its runs are predicted for %s, and these would be for %s", *p, *profile)
		}
		if f := r.Manifest.Phantom; f != nil && m.Predicted && f.MemoryBytes != m.ProcessBytes() {
			return fmt.Sprintf("its runs are predicted for a memory of %d bytes, and these would be for %d",
				f.MemoryBytes, m.ProcessBytes())
		}
	}
	return ""
}

// settled lists the runs of a suite, oldest first, when none of them is being recorded any more.
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
				Advice: "another dpsight is at work on this suite: wait for it, or stop it"}
		case waiting != nil:
			waiting(busy)
			waiting = nil
		}
	}
}
