package examples_test

import (
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/schemas"
)

// storeFolders returns all folders below examples that contain runs.
func storeFolders(t testing.TB) []string {
	t.Helper()
	var folders []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != schemas.ManifestFile {
			return err
		}
		if folder := filepath.Dir(filepath.Dir(path)); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return nil
	})
	if err != nil || len(folders) == 0 {
		t.Fatalf("no folder holds runs, %v", err)
	}
	return folders
}

// manifests returns the manifests of all runs, bare runs and runs outside suites too, by file path.
func manifests(t *testing.T) iter.Seq2[string, *schemas.Manifest] {
	t.Helper()
	return func(yield func(string, *schemas.Manifest) bool) {
		for _, folder := range storeFolders(t) {
			for path, m := range manifestsOf(t, folder) {
				if !yield(path, m) {
					return
				}
			}
		}
	}
}

func manifestsOf(t testing.TB, folder string) iter.Seq2[string, *schemas.Manifest] {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*", schemas.ManifestFile))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no runs, %v", folder, err)
	}
	return func(yield func(string, *schemas.Manifest) bool) {
		for _, path := range paths {
			m, err := schemas.ReadManifest(filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			if !yield(path, m) {
				return
			}
		}
	}
}

// noSuites lists the stores that the tests over all suites leave out: a store without a suite, stores with a part of
// what their suites made (see [TestRecordedFigures]), stores that other tests or the documents' tables cover, and a
// store with a run that was meant to die.
var noSuites = []string{"accuracy-development", "accuracy-held-out", "accuracy-held-out-fixed-kinds",
	"accuracy-held-out-missed-kinds", "accuracy-held-out-worst-kind", "claims", collectorAlone,
	"lora", "oom", pairs}

// Every built-in suite has a store in examples. Every store is in the list suites, which other tests read, or in
// noSuites.
func TestEverySuiteIsRead(t *testing.T) {
	for _, name := range suite.Names() {
		if !slices.Contains(suites, name) {
			t.Errorf("no test reads a recording of the suite %s", name)
		}
	}
	for _, folder := range storeFolders(t) {
		if !slices.Contains(suites, folder) && !slices.Contains(noSuites, folder) {
			t.Errorf("no test reads the recordings of %s", folder)
		}
	}
}

// isolationCost is how long a run may wait for a free GPU.
const isolationCost = 500 * time.Millisecond

// Every measured run had its GPU to itself, and waited less than half a second for that.
func TestRecordingsAreIsolated(t *testing.T) {
	measured := 0
	for path, m := range manifests(t) {
		if m.Source != schemas.Measured {
			continue
		}
		measured++
		i := m.Isolation
		if i == nil || !i.Verified || i.Reason != "" || i.IdleBytes == nil || i.OtherProcesses == nil ||
			*i.OtherProcesses != 0 || i.ThrottleReasons == nil {
			t.Errorf("%s: isolation %+v", path, i)
			continue
		}
		if waited := time.Duration(i.WaitedNS); waited >= isolationCost {
			t.Errorf("%s: waited %s for the GPU", path, waited)
		}
	}
	if measured == 0 {
		t.Error("no run is measured")
	}
}
