// Package agent carries the Python package that records inside the experiment's process. Its sitecustomize.py is run by
// the interpreter itself, so that any training script is recorded unchanged.
package agent

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
)

// Named one by one: a folder's pattern would leave out __init__.py, and take in what an interpreter caches beside it.
//
//go:embed python/*.py python/dpsight/*.py
//go:embed python/dpsight/*/*.py
var files embed.FS

// FS holds sitecustomize.py and the package dpsight, below the folder python.
func FS() fs.FS { return files }

// Unpack writes the agent below dir. The folder dir/python then belongs on PYTHONPATH.
func Unpack(dir string) error {
	return fs.WalkDir(files, "python", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(name))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		b, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o644)
	})
}
