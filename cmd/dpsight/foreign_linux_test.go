package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dpsight/dpsight/schemas"
)

// ingested is a store with one run that has its tables.
func ingested(t *testing.T) (store string) {
	t.Helper()
	store = t.TempDir()
	dir := filepath.Join(store, atOnceRun)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("../../examples/mlp", atOnceRun))); err != nil {
		t.Fatal(err)
	}
	must(t, "", "ingest", dir)
	return store
}

// dpsight does not open a pipe in a store. Nothing writes to such a pipe, so reading it would never end.
func TestPipesAreNotOpened(t *testing.T) {
	t.Parallel()
	store := ingested(t)
	other := filepath.Join(store, "20261121T205110Z-pipe-0a0b0c")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, pipe := range []string{filepath.Join(other, schemas.ManifestFile), filepath.Join(store, "pipe")} {
		if err := unix.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	out, err := exec.CommandContext(ctx, "dpsight", "runs", "--store", store).CombinedOutput()
	if err != nil || !strings.Contains(string(out), atOnceRun) || !strings.Contains(string(out), "no regular file") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Files that dpsight did not write are overwritten only with --force.
func TestForeignFilesStay(t *testing.T) {
	t.Parallel()
	store := ingested(t)
	file := filepath.Join(t.TempDir(), "notes.json")
	for _, args := range [][]string{{"check", "--write-baseline", file}, {"export", "-o", file}} {
		if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--store", store)
		r := dpsight(t, "", args...)
		if kept, _ := os.ReadFile(file); r.code == exitDone || string(kept) != "mine" ||
			!strings.Contains(r.stderr, "--force") {
			t.Errorf("%v: exit code %d, the file has %.20q\n%s", args, r.code, kept, r.stderr)
		}
		must(t, "", append(args, "--force")...)
		must(t, "", args...) // dpsight's own file
	}
}
