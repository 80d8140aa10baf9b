package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	if err := Unpack(dir); err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("python/dpsight/*.py")
	folders, _ := filepath.Glob("python/dpsight/*/*.py")
	sources = append(sources, folders...)
	if err != nil || len(folders) < 10 {
		t.Fatalf("%d source files, %v", len(sources), err)
	}
	for _, s := range append(sources, "python/sitecustomize.py") {
		want, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, s))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: not unpacked as it is: %v", s, err)
		}
	}
	n := 0
	fs.WalkDir(FS(), ".", func(_ string, e fs.DirEntry, _ error) error {
		if !e.IsDir() {
			n++
		}
		return nil
	})
	if n != len(sources)+1 {
		t.Errorf("%d files embedded, %d sources", n, len(sources)+1)
	}
}
