package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

const (
	suitesFolder = "suites" // the store's folder of suite documents
	lockSuffix   = ".lock"  // suffix of the lock file beside a suite's document
	lockTries    = 100      // how often to try to make a lock file in a folder that others may remove
)

// SuiteSchema is the version that this package writes.
const SuiteSchema = "dpsight.suite/2"

// undigestedSuite is the version before [SuiteSchema]. Documents of this version can still be read, and have no digest.
const undigestedSuite = "dpsight.suite/1"

// Suite (suites/<id>.json) is the plan of a suite and the runs that it has made so far.
type Suite struct {
	Schema  string    `json:"schema"`
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Baseline has parameter values. The experiments whose parameters contain all these values are the baselines of the
	// other experiments.
	Baseline map[string]any `json:"baseline"`
	// Environment has the environment variables that the suite sets for its experiments. Secrets are masked as "***".
	Environment map[string]string `json:"environment,omitempty"`
	Experiments []Experiment      `json:"experiments"`
}

// Experiment is one cell of a suite's plan.
type Experiment struct {
	Key    string         `json:"key"` // hash of the experiment's content
	Name   string         `json:"name"`
	Params map[string]any `json:"params"`
	// Repeats is how many runs are wanted; 0 in older documents, which lack the number.
	Repeats int      `json:"repeats,omitempty"`
	RunIDs  []string `json:"run_ids"` // ids of the runs, in the order of repetition
	// Superseded lists runs of the experiment that do not count, since they were interrupted or failed and were made
	// again.
	Superseded []string `json:"superseded,omitempty"`
}

// RunIDs lists the suite's runs in the order of its plan.
func (s *Suite) RunIDs() []string {
	var ids []string
	for _, e := range s.Experiments {
		ids = append(ids, e.RunIDs...)
	}
	return ids
}

// Experiment returns the suite's experiment with a key, or nil if there is none.
func (s *Suite) Experiment(key string) *Experiment {
	for i := range s.Experiments {
		if s.Experiments[i].Key == key {
			return &s.Experiments[i]
		}
	}
	return nil
}

// SuiteFile returns the path of a suite's document.
func (s *Store) SuiteFile(id string) string { return filepath.Join(s.dir, suitesFolder, id+".json") }

// WriteSuite writes the suite's document into the store.
func (s *Store) WriteSuite(suite *Suite) error {
	if suite.ID == "" || suite.ID != filepath.Base(suite.ID) {
		return fmt.Errorf("suite id %q cannot name a file", suite.ID)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, suitesFolder), 0o700); err != nil {
		return fmt.Errorf("writing suite %s: %w", suite.ID, err)
	}
	suite.Schema = SuiteSchema
	if err := schemas.WriteDocument(s.SuiteFile(suite.ID), suite); err != nil {
		return fmt.Errorf("writing suite %s: %w", suite.ID, err)
	}
	return nil
}

// LockSuite takes the lock of a suite. A process that makes the suite's runs must hold the lock, since it rewrites the
// suite's document after each run. LockSuite returns [schemas.ErrLocked] if another dpsight holds the lock. Unlocking
// removes the lock file. LockSuite reuses a lock file that a killed process left.
func (s *Store) LockSuite(id string) (unlock func(), err error) {
	return s.lockSuites(id, schemas.TryLockPath)
}

// LockSuiteName waits for the lock of a suite's name. A caller that begins a suite only if the store has none with that
// name holds this lock from before it looks until it has written the suite's document.
func (s *Store) LockSuiteName(name string) (unlock func(), err error) {
	return s.lockSuites(name, schemas.LockPath)
}

// lockSuites takes the lock of a lock file in the folder of suite documents. lockSuites makes the folder and the file
// if they are missing.
func (s *Store) lockSuites(name string, take func(string) (*schemas.Lock, error)) (unlock func(), err error) {
	dir := filepath.Join(s.dir, suitesFolder)
	path := filepath.Join(dir, name+lockSuffix)
	for tries := 0; ; tries++ {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("locking suite %s: %w", name, err)
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o600)
		if errors.Is(err, fs.ErrNotExist) && tries < lockTries {
			continue // another process has just removed the folder with an empty suite
		}
		if err != nil {
			return nil, fmt.Errorf("locking suite %s: %w", name, err)
		}
		f.Close()
		lock, err := take(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the process that held the lock has just removed the file
		}
		if err != nil {
			return nil, err
		}
		// The previous holder may have removed the lock file meanwhile. A lock whose file was removed is useless, since
		// no other process can find the file.
		if lock.Holds(path) {
			return sync.OnceFunc(func() {
				os.Remove(path)
				lock.Unlock()
			}), nil
		}
		lock.Unlock()
	}
}

// SuiteName returns the name of the suite that has an id, since ids have the form time-name-random. SuiteName returns
// "" for a text that is no suite's id.
func SuiteName(id string) string {
	_, rest, _ := strings.Cut(id, "-")
	if k := strings.LastIndexByte(rest, '-'); k >= 0 {
		return rest[:k]
	}
	return ""
}

// SweepSuites removes half-written documents of suites with the given name that killed processes left. SweepSuites
// keeps the documents of suites whose lock another process holds.
func (s *Store) SweepSuites(name string) error {
	dir := filepath.Join(s.dir, suitesFolder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		id, suffix, _ := strings.Cut(e.Name(), ".json")
		if !strings.HasSuffix(suffix, schemas.PartialSuffix) || SuiteName(id) != name {
			continue
		}
		unlock, busy := s.LockSuite(id)
		if errors.Is(busy, schemas.ErrLocked) {
			continue
		}
		if busy != nil {
			return errors.Join(err, busy)
		}
		if e := os.Remove(filepath.Join(dir, e.Name())); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
		unlock()
	}
	return err
}

func readSuite(path string) (*Suite, error) {
	suite := new(Suite)
	if err := schemas.ReadDocument(path, SuiteSchema, suite, undigestedSuite); err != nil {
		return nil, err
	}
	return suite, nil
}

// Suites lists the store's suites, oldest first, and the documents that cannot be read.
func (s *Store) Suites() ([]*Suite, []Damaged, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, suitesFolder))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
		return nil, nil, &ReadError{fmt.Errorf("reading suites: %w", err)}
	}
	var suites []*Suite
	var damaged []Damaged
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		path := filepath.Join(s.dir, suitesFolder, e.Name())
		suite, err := readSuite(path)
		if err != nil {
			damaged = append(damaged, Damaged{path, err, strings.TrimSuffix(e.Name(), ".json")})
			continue
		}
		suites = append(suites, suite)
	}
	slices.SortFunc(suites, func(a, b *Suite) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return suites, damaged, nil
}
