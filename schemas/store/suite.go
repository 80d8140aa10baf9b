package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// suitesFolder is the store's folder of suite documents.
const suitesFolder = "suites"

// SuiteSchema is the version that this package writes.
const SuiteSchema = "dpsight.suite/1"

// Suite (suites/<id>.json) is the plan of a suite and the runs that it has made so far.
type Suite struct {
	Schema  string    `json:"schema"`
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	// Baseline names the experiments that the others are compared with: those whose parameters hold all of these.
	Baseline map[string]any `json:"baseline"`
	// Environment is what the suite sets for its experiments, secrets masked as "***".
	Environment map[string]string `json:"environment,omitempty"`
	Experiments []Experiment      `json:"experiments"`
}

// Experiment is one cell of a suite's plan.
type Experiment struct {
	Key    string         `json:"key"` // hash of the experiment's content
	Name   string         `json:"name"`
	Params map[string]any `json:"params"`
	// Repeats is how many runs are wanted; 0 in documents of before there was a number.
	Repeats int      `json:"repeats,omitempty"`
	RunIDs  []string `json:"run_ids"` // in the order of repetition
	// Superseded are runs that do not count, since they were made again: they were interrupted, or failed and tried
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

// Experiment gives the cell of a key, nil if there is none.
func (s *Suite) Experiment(key string) *Experiment {
	for i := range s.Experiments {
		if s.Experiments[i].Key == key {
			return &s.Experiments[i]
		}
	}
	return nil
}

// SuiteFile is the path of a suite's document.
func (s *Store) SuiteFile(id string) string { return filepath.Join(s.dir, suitesFolder, id+".json") }

// WriteSuite writes the suite's document into the store.
func (s *Store) WriteSuite(suite *Suite) error {
	if suite.ID == "" || suite.ID != filepath.Base(suite.ID) {
		return fmt.Errorf("suite id %q cannot name a file", suite.ID)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, suitesFolder), 0o755); err != nil {
		return fmt.Errorf("writing suite %s: %w", suite.ID, err)
	}
	suite.Schema = SuiteSchema
	if err := schemas.WriteDocument(s.SuiteFile(suite.ID), suite); err != nil {
		return fmt.Errorf("writing suite %s: %w", suite.ID, err)
	}
	return nil
}

// SweepSuites removes the half-written documents of suites of a name (ids are time-name-random): a process that was
// killed has left them. None may be writing one.
func (s *Store) SweepSuites(name string) error {
	dir := filepath.Join(s.dir, suitesFolder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		id, partial := strings.CutSuffix(e.Name(), ".json"+schemas.PartialSuffix)
		_, rest, _ := strings.Cut(id, "-")
		if k := strings.LastIndexByte(rest, '-'); partial && k >= 0 && rest[:k] == name {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

func readSuite(path string) (*Suite, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	suite := new(Suite)
	if err := json.Unmarshal(b, suite); err != nil {
		return nil, fmt.Errorf("%s: not a suite document: %w", filepath.Base(path), err)
	}
	if suite.Schema != SuiteSchema {
		return nil, &schemas.SchemaError{File: filepath.Base(path), Got: suite.Schema, Want: SuiteSchema}
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
			damaged = append(damaged, Damaged{path, err})
			continue
		}
		suites = append(suites, suite)
	}
	slices.SortFunc(suites, func(a, b *Suite) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return suites, damaged, nil
}
