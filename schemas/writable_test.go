package schemas

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestCheckFolder(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{dir: true, filepath.Join(dir, "a", "b"): true, file: false,
		filepath.Join(file, "a", "b"): false} {
		err := CheckFolder(path)
		var of *fs.PathError
		if (err == nil) != ok || !ok && (!errors.As(err, &of) || of.Path != file) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("it made %v", entries)
	}
}
