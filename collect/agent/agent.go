// Package agent carries the Python package that records inside the experiment's process. The Python interpreter runs
// the agent's sitecustomize.py when it starts, so a training script is recorded unchanged.
package agent

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Patterns name the agent's files: a folder's own pattern would leave out __init__.py and include files that an
// interpreter caches.
//
//go:embed python/*.py python/dpsight/*.py
//go:embed python/dpsight/*/*.py
//go:embed python/dpsight/masking_rules.json
var files embed.FS

// FS contains sitecustomize.py and the package dpsight, in the folder python.
func FS() fs.FS { return files }

// Unpack writes the agent's files into the folder dir. A recorded process needs dir/python on its PYTHONPATH.
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

// Is reports whether a folder contains this agent's version of the package dpsight.
func Is(folder string) bool {
	const root = "python/dpsight"
	err := fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		want, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(strings.TrimPrefix(name, root))))
		if err == nil && !bytes.Equal(got, want) {
			err = errOther
		}
		return err
	})
	return err == nil
}

var errOther = errors.New("another file")

// MaskingRules is a JSON document with the names and texts that mark secrets. Agent and collector share it.
//
//go:embed python/dpsight/masking_rules.json
var MaskingRules []byte
