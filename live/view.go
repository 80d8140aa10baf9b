package live

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/report/selected"
)

// calm is the shortest time between two readings of the journals, however many requests come.
const calm = 200 * time.Millisecond

// kept is how long an ended run is still shown among the running runs.
const kept = 10 * time.Minute

// A View shows the runs of a store, ended and running.
type View struct {
	source *selected.Source
	names  []string

	mu      sync.Mutex // guards the fields below it
	folders *Folders
	runs    map[string]*run
	shown   []*page.Live
	looked  time.Time
	ended   map[string]*endedRun
	version int64

	reading sync.Mutex // guards the fields below: loading documents takes longer than mu may be held
	served  *selected.Served
	of      int64 // the version in served
}

// endedRun is the last state that a view saw of an ended run.
type endedRun struct {
	live *page.Live
	at   time.Time
}

// NewView makes a view of the runs that a command names, see [NewFolders]. running reports whether a collector is
// recording into a folder.
func NewView(source *selected.Source, names []string, running func(dir string) bool) *View {
	quiet := *source
	quiet.Say, quiet.Note, quiet.Warn = func(string) {}, func(string) {}, func(string) {}
	return &View{source: &quiet, names: names, folders: NewFolders(source.Store, names, running),
		runs: map[string]*run{}, ended: map[string]*endedRun{}}
}

// Running returns the runs that are being recorded and the runs that ended in the last ten minutes. Running also
// returns the number of ended runs, which changes whenever a run ends.
func (v *View) Running() ([]*page.Live, int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.look()
	return v.shown, v.version
}

// Runs returns the same runs as [View.Running], without the number.
func (v *View) Runs() []*page.Live {
	runs, _ := v.Running()
	return runs
}

func (v *View) look() {
	now := time.Now()
	if now.Sub(v.looked) < calm {
		return
	}
	v.looked = now
	dirs, ended := v.folders.Look()
	v.version = int64(ended)
	var shown []*page.Live
	for _, dir := range dirs {
		r := v.runs[dir]
		if r == nil {
			r = openRun(dir)
			v.runs[dir] = r
		}
		l := r.read(now)
		delete(v.ended, dir)
		shown = append(shown, l)
	}
	for dir, r := range v.runs {
		if slices.Contains(dirs, dir) {
			continue
		}
		delete(v.runs, dir)
		v.ended[dir] = &endedRun{r.last(now), now}
	}
	for dir, e := range v.ended {
		if now.Sub(e.at) > kept {
			delete(v.ended, dir)
			continue
		}
		shown = append(shown, e.live)
	}
	slices.SortFunc(shown, func(a, b *page.Live) int { return cmp.Compare(a.StartNS, b.StartNS) })
	v.shown = shown
}

// Served returns the ended runs, and the same number of them as [View.Running].
func (v *View) Served() (*selected.Served, int64, error) {
	v.mu.Lock()
	v.look()
	version := v.version
	v.mu.Unlock()
	v.reading.Lock()
	defer v.reading.Unlock()
	if v.served != nil && v.of >= version {
		return v.served, v.of, nil
	}
	served, err := v.source.Served(v.names)
	if err != nil {
		return nil, 0, err
	}
	v.served, v.of = served, version
	return served, version, nil
}
