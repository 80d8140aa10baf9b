package live

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// Folders finds the run folders that a view shows. Once a run has ended and has tables, Folders does not look at its
// folder again.
type Folders struct {
	store  string
	stores []string // the view shows all runs of these stores
	runs   []string // run folders that the command names
	names  []string // names and ids that the command gives of runs in the store

	atRest  map[string]bool   // folders of ended runs with tables, which no longer change
	ended   int               // how many folders Look has added to atRest
	called  map[string]string // name of each run, by folder
	running func(dir string) bool
}

// NewFolders makes the Folders for a command's arguments. An argument is a store, a run folder, or a name or id of runs
// in the store. Without arguments, the Folders have all runs of the store. running reports whether a run is being
// recorded into a folder.
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

// Look lists the folders of runs that are being recorded, oldest first. Look also returns the number of ended runs with
// tables that it has found so far.
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

// candidates returns all folders that may be run folders of the view.
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

// named reports whether one of the command's names fits the run in a folder. A name fits if it is the beginning of the
// run's id, or the run's name.
func (f *Folders) named(dir string) bool {
	id := filepath.Base(dir)
	called, known := f.called[dir]
	if !known {
		m, err := schemas.ReadManifest(dir)
		if err != nil { // the collector is writing the folder, or the folder is no run
			return false
		}
		called, f.called[dir] = m.Name, m.Name
	}
	return slices.ContainsFunc(f.names, func(name string) bool { return name == called || strings.HasPrefix(id, name) })
}

func within(store string) (dirs []string) {
	entries, _ := os.ReadDir(store) // a store that does not exist yet has no runs
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
