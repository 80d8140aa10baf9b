//go:build unix

package ingest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dpsight/dpsight/schemas"
)

// Import reads a pipe like a file. After an import, no temporary files lie beside the run.
func TestImportFromPipe(t *testing.T) {
	path, store := filepath.Join(t.TempDir(), "pipe.pickle"), t.TempDir()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		p, err := os.ReadFile(smallSnapshot)
		if err == nil {
			err = os.WriteFile(path, p, 0)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	outs, err := Import(path, store, Options{})
	if err != nil || len(outs) != 1 || outs[0].State != schemas.IngestNew {
		t.Fatalf("%+v, %v", outs, err)
	}
	if entries, _ := os.ReadDir(store); len(entries) != 1 {
		t.Errorf("the store has %v", entries)
	}
}
