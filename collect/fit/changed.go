package fit

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/launch"
)

// mostFiles bounds the look at what a script may import.
const mostFiles = 20_000

// written are the endings of what a script is made of.
var written = []string{".py", ".sh", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini"}

// A Change is when what a command runs was last written. Unknown says that there is too much to look at: then it may have been
// at any time.
type Change struct {
	Last    time.Time
	Unknown bool
}

func (c Change) after(t time.Time) bool { return c.Unknown || c.Last.After(t) }

func (c *Change) look(path string) {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.ModTime().After(c.Last) {
		c.Last = info.ModTime()
	}
}

// Changed looks at the command's script, at the files that its words name, and at every Python file and file of settings in the
// script's folder and below it: the hash of the script alone would not know of what it imports. Where no script can be seen (a
// module, a shell script) it is the folder that the command runs in. ours are the files and folders that dpsight itself writes:
// each search makes them newer than its own runs. A built-in experiment has no command, and its files are in its key.
func Changed(dir string, command []string, ours ...string) Change {
	var c Change
	if len(command) == 0 {
		return c
	}
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	root := dir
	if script, _ := launch.Started(command); script != "" {
		root = filepath.Dir(at(script))
		c.look(at(script)) // itself first, whatever its name ends in and however much lies beside it
	}
	for _, word := range command {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
		if slices.Contains(written, filepath.Ext(word)) {
			c.look(at(word))
		}
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real // a walk does not enter a link
	}
	skip := map[string]bool{}
	for _, path := range ours {
		skip[real(at(path))] = true
	}
	files := 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read cannot be imported
		}
		if d.IsDir() {
			if path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "__pycache__" || d.Name() == "node_modules" || skip[path]) {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, schemas.ManifestFile)); err == nil {
				return filepath.SkipDir // a run
			}
			return nil
		}
		if files++; files > mostFiles {
			c.Unknown = true
			return filepath.SkipAll
		}
		if slices.Contains(written, filepath.Ext(path)) && !skip[path] {
			c.look(path)
		}
		return nil
	})
	return c
}

// real is a path without links, as far as there is one.
func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(real(dir), filepath.Base(path))
	}
	return path
}
