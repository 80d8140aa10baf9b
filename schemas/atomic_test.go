package schemas

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// If many goroutines write a file at once, the file has the whole content of one of them. No other file is left.
func TestWriteFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	text := func(i int) string { return strings.Repeat(fmt.Sprint(i%10), 100+i) }
	var writers sync.WaitGroup
	for i := range 50 {
		writers.Go(func() {
			err := WriteFile(path, func(w io.Writer) error {
				for _, c := range text(i) {
					if _, err := io.WriteString(w, string(c)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != text(len(got)-100) {
		t.Errorf("%.20q, %v", got, err)
	}
	if left := Partials(path); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// WriteFile does not follow a link beside the file, even if the link has a name that WriteFile would use.
func TestWriteFileFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "f"), filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path+PartialSuffix); err != nil {
		t.Skip(err)
	}
	if err := WriteFile(path, func(w io.Writer) error { _, err := io.WriteString(w, "new"); return err }); err != nil {
		t.Fatal(err)
	}
	kept, _ := os.ReadFile(other)
	written, _ := os.ReadFile(path)
	if string(kept) != "mine" || string(written) != "new" {
		t.Errorf("%q, %q", kept, written)
	}
}

// If many goroutines make the same folder, one succeeds. All others get an error and leave no files.
func TestWriteFolderAtOnce(t *testing.T) {
	for range 20 {
		store := t.TempDir()
		path := filepath.Join(store, "run")
		if err := os.Mkdir(path+".1"+PartialSuffix, 0o755); err != nil { // a process that was killed left this folder
			t.Fatal(err)
		}
		var made, told sync.Map
		var writers sync.WaitGroup
		for i := range 8 {
			writers.Go(func() {
				err := WriteFolder(path, func(dir string) error {
					if err := os.WriteFile(filepath.Join(dir, "a"), []byte{byte(i)}, 0o600); err != nil {
						return err
					}
					return os.WriteFile(filepath.Join(dir, "b"), []byte{byte(i)}, 0o600)
				})
				switch {
				case err == nil:
					made.Store(i, true)
				case errors.Is(err, fs.ErrExist):
					told.Store(i, true)
				default:
					t.Error(err)
				}
			})
		}
		writers.Wait()
		a, errA := os.ReadFile(filepath.Join(path, "a"))
		b, errB := os.ReadFile(filepath.Join(path, "b"))
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		if _, ok := made.Load(int(a[0])); !ok || a[0] != b[0] {
			t.Errorf("the folder is of %d and %d", a[0], b[0])
		}
		n := 0
		told.Range(func(any, any) bool { n++; return true })
		if entries, _ := os.ReadDir(store); n != 7 || len(entries) != 1 {
			t.Errorf("%d were told, and the store has %v", n, entries)
		}
	}
}

func TestLockPath(t *testing.T) {
	dir := t.TempDir()
	lock, err := LockPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLockPath(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	done := make(chan error)
	go func() {
		second, err := LockPath(dir)
		second.Unlock()
		done <- err
	}()
	lock.Unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := LockPath(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
