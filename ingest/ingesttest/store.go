// Package ingesttest makes the tables of recorded stores for tests, since the repository keeps these stores without
// tables.
package ingesttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
)

var (
	mu     sync.Mutex
	stores = map[string]string{} // stores that have tables, by the folder of the store without tables
)

// Store returns the folder of a copy of a store in which the runs have their tables. If the store itself has tables,
// Store returns its own folder. Store makes the copy once per process and in a separate folder, since other test
// binaries may be reading the original. [Remove] removes the copy.
func Store(t testing.TB, folder string) string {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	path, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	if stores[path] == "" {
		if stores[path], err = ingested(path); err != nil {
			t.Fatal(err)
		}
	}
	return stores[path]
}

// Remove deletes the copies that Store made. TestMain calls it.
func Remove() {
	mu.Lock()
	defer mu.Unlock()
	for from, to := range stores {
		if to != from {
			os.RemoveAll(filepath.Dir(to))
		}
	}
	clear(stores)
}

func ingested(folder string) (string, error) {
	manifests, err := filepath.Glob(filepath.Join(folder, "*", schemas.ManifestFile))
	if err != nil || len(manifests) == 0 {
		return "", fmt.Errorf("no runs in %s: %v", folder, err)
	}
	var raw []string
	for _, m := range manifests {
		if _, err := os.Stat(filepath.Join(filepath.Dir(m), schemas.IngestReportFile)); err != nil {
			raw = append(raw, filepath.Base(filepath.Dir(m)))
		}
	}
	if len(raw) == 0 {
		return folder, nil
	}
	temp, err := os.MkdirTemp("", "dpsight-store-")
	if err != nil {
		return "", err
	}
	from := folder
	folder = filepath.Join(temp, filepath.Base(from))
	if err := os.CopyFS(folder, os.DirFS(from)); err != nil {
		return "", err
	}
	var wg sync.WaitGroup
	errs := make([]error, len(raw))
	slots := make(chan struct{}, 2)
	for i, run := range raw {
		slots <- struct{}{}
		wg.Go(func() {
			if _, err := ingest.Run(filepath.Join(folder, run), ingest.Options{Version: "test"}); err != nil {
				errs[i] = fmt.Errorf("%s: %w", run, err)
			}
			<-slots
		})
	}
	wg.Wait()
	return folder, errors.Join(errs...)
}

// TorchPeak returns the highest allocated by torch's own counters on any device of the run in dir, in bytes; 0 if the
// counters were not recorded. Tests compare it with the figures of runs with allocator events, which come from the
// replay.
func TorchPeak(t testing.TB, dir string) (peak int64) {
	t.Helper()
	doc, err := schemas.ReadIngestReport(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range doc.Devices {
		if p := doc.Devices[i].TorchPeakAllocatedBytes; p != nil {
			peak = max(peak, *p)
		}
	}
	return peak
}
