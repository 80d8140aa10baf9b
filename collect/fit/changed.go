package fit

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/launch"
)

// mostFiles is the most files that are looked at as possible imports of a script.
const mostFiles = 20_000

// written are the endings of file names that count as parts of a script.
var written = []string{".py", ".sh", ".yaml", ".yml", ".json", ".toml", ".cfg", ".ini"}

// A Change says when the files that a command runs were last written. Unknown means that there are too many files to
// look at, so that the time is unknown.
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

// Changed returns the latest change to the files that a command runs. Changed looks at the command's script, at the
// files that the command's words name, and at every Python file and file of settings below the script's folder and the
// working folder. A hash of the script alone would miss its imports, and "python scripts/train.py" may import a package
// beside the folder scripts. Changed leaves out hidden folders and environments. ours are the files and folders that
// dpsight itself writes, since each search makes them newer than its own runs. A built-in experiment has no command:
// its key includes its files.
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
	roots := []string{dir}
	if script, _ := launch.Started(command); script != "" {
		roots = []string{filepath.Dir(at(script)), dir}
		c.look(at(script)) // the script is looked at first, with any extension and however many files are beside it
	}
	for _, word := range command {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
		if slices.Contains(written, filepath.Ext(word)) {
			c.look(at(word))
		}
	}
	skip := map[string]bool{}
	for _, path := range ours {
		skip[real(at(path))] = true
	}
	l := &looker{change: &c, skip: skip, seen: map[string]bool{}}
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real // a walk does not follow links
		}
		l.walk(root)
	}
	return c
}

// A looker walks several folders, one of which may contain another.
type looker struct {
	change *Change
	skip   map[string]bool // files and folders that dpsight writes
	seen   map[string]bool // folders that were walked
	files  int
}

func (l *looker) walk(root string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a folder that cannot be read cannot be imported from
		}
		if d.IsDir() {
			if l.seen[path] || path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "__pycache__" ||
				d.Name() == "node_modules" || l.skip[path] || isEnvironment(path)) {
				return filepath.SkipDir
			}
			l.seen[path] = true
			if exists(path, schemas.ManifestFile) {
				return filepath.SkipDir // the folder of a run
			}
			l.skipReport(path)
			return nil
		}
		if l.files++; l.files > mostFiles {
			l.change.Unknown = true
			return filepath.SkipAll
		}
		if slices.Contains(written, filepath.Ext(path)) && !l.skip[path] && !isDocument(path) {
			l.change.look(path)
		}
		return nil
	})
}

// skipReport leaves out the files of a report, if a folder has one, but no other files in that folder.
func (l *looker) skipReport(dir string) {
	names, _ := os.ReadFile(filepath.Join(dir, schemas.ReportFiles)) // without a list there is no report
	for name := range strings.Lines(string(names)) {
		l.skip[filepath.Join(dir, filepath.FromSlash(strings.TrimSpace(name)))] = true
	}
}

// isDocument reports whether a file is one of dpsight's own JSON documents, such as a baseline or an exported table.
// Each of them begins with its schema.
func isDocument(path string) bool {
	if filepath.Ext(path) != ".json" {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 64)
	n, _ := io.ReadFull(f, start)
	return documentStart.Match(start[:n])
}

var documentStart = regexp.MustCompile(`^\s*\{\s*"schema":\s*"dpsight\.`)

// isEnvironment reports whether a folder is a Python environment. Environments have more files than Changed may look
// at. A run's key includes the environment's versions of torch and Opacus.
func isEnvironment(dir string) bool { return exists(dir, "pyvenv.cfg") || exists(dir, "conda-meta") }

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// real returns a path with its links resolved, as far as the path exists.
func real(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(real(dir), filepath.Base(path))
	}
	return path
}
