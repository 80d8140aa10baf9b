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
	Baseline    map[string]any `json:"baseline"`
	Experiments []Experiment   `json:"experiments"`
}

// Experiment is one cell of a suite's plan.
type Experiment struct {
	Key    string         `json:"key"` // hash of the experiment's content
	Name   string         `json:"name"`
	Params map[string]any `json:"params"`
	RunIDs []string       `json:"run_ids"` // in the order of repetition
}

// RunIDs lists the suite's runs in the order of its plan.
func (s *Suite) RunIDs() []string {
	var ids []string
	for _, e := range s.Experiments {
		ids = append(ids, e.RunIDs...)
	}
	return ids
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

// ReadSuite reads a suite's document; one that does not exist gives fs.ErrNotExist.
func (s *Store) ReadSuite(id string) (*Suite, error) { return readSuite(s.SuiteFile(id)) }

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
		return nil, nil, fmt.Errorf("reading suites: %w", err)
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
