package live

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// Folders finds the run folders of a view. Folders does not look again into a folder that no longer changes.
type Folders struct {
	store  string
	stores []string // stores all of whose runs are meant
	runs   []string // folders of single runs
	names  []string // of runs in the store

	atRest  map[string]bool   // with tables or without, nothing changes there any more
	ended   int               // how many folders Look has put at rest
	called  map[string]string // names of runs by their folders
	running func(dir string) bool
}

// NewFolders looks into what a command names: stores, run folders, and names or ids of runs in the store. Without
// names, NewFolders looks into the whole store. running reports whether a run is being recorded.
func NewFolders(store string, names []string, running func(dir string) bool) *Folders {
	f := &Folders{store: store, atRest: map[string]bool{}, called: map[string]string{},
		running: running}
	for _, name := range names {
		switch st, err := os.Stat(name); {
		case err != nil || !st.IsDir():
			f.names = append(f.names, name)
		case exists(filepath.Join(name, schemas.ManifestFile)):
			f.runs = append(f.runs, filepath.Clean(name))
		default:
			f.stores = append(f.stores, filepath.Clean(name))
		}
	}
	if len(names) == 0 {
		f.stores = []string{filepath.Clean(store)}
	}
	return f
}

// Look lists the folders of runs that are being recorded, oldest first, and how often it saw a run end or get its
// tables.
func (f *Folders) Look() (running []string, ended int) {
	for _, dir := range f.candidates() {
		if f.atRest[dir] || !exists(filepath.Join(dir, spool.Dir)) {
			continue
		}
		switch {
		case f.running(dir):
			running = append(running, dir)
		case exists(filepath.Join(dir, schemas.IngestReportFile)):
			f.atRest[dir] = true
			f.ended++
		}
	}
	slices.SortFunc(running, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return running, f.ended
}

// candidates are all folders that may be runs of the view.
func (f *Folders) candidates() (dirs []string) {
	dirs = append(dirs, f.runs...)
	for _, store := range f.stores {
		dirs = append(dirs, within(store)...)
	}
	if len(f.names) > 0 {
		for _, dir := range within(f.store) {
			if f.named(dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// named reports whether one of the names means a run: its id, the beginning of its id, or its own name.
func (f *Folders) named(dir string) bool {
	id := filepath.Base(dir)
	called, known := f.called[dir]
	if !known {
		m, err := schemas.ReadManifest(dir)
		if err != nil { // the folder is being written, or is no run
			return false
		}
		called, f.called[dir] = m.Name, m.Name
	}
	return slices.ContainsFunc(f.names, func(name string) bool { return name == called || strings.HasPrefix(id, name) })
}

func within(store string) (dirs []string) {
	entries, _ := os.ReadDir(store) // a store that is not there yet has no runs
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			dirs = append(dirs, filepath.Join(store, e.Name()))
		}
	}
	return dirs
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
