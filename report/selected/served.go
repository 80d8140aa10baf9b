package selected

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dpsight/dpsight/analyze/blocks"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Served is what a server shows of runs: the page's documents, and the blocks of a device when they are asked for.
type Served struct {
	// First is what the page needs to show anything. Whole is all of it, which takes several readings of the runs more:
	// it is begun at once.
	First Told
	Whole func() (Told, error)

	runs   *Runs
	places []servedPlace
	most   int64 // events that are given one by one

	mu   sync.Mutex
	last *servedRun // whose tables are at hand
}

// Told is what a page knows of itself, and what the commands print, as JSON.
type Told struct{ About, Documents []byte }

// servedPlace is a device of a run.
type servedPlace struct {
	run  int
	name string
	rank int32
}

// servedRun is a run as it is read.
type servedRun struct {
	run     int
	tables  schemas.Tables
	devices []blocks.Device
	whole   map[servedWhole]*timeline.DeviceTimeline
}

// servedWhole is a line of all events of a device, of so many points: each window is shown beside it.
type servedWhole struct {
	place  servedPlace
	points int
}

// Served reads what a page shows of runs that a view names: of all of a store, where it names none. Runs without tables
// are in its list alone.
func (s *Source) Served(names []string) (*Served, error) { return s.served(names, page.MostServed) }

func (s *Source) served(names []string, most int64) (*Served, error) {
	r, err := s.SelectEach(names)
	if none := (*store.NoRunsError)(nil); errors.As(err, &none) {
		first, err := told(page.NewBuilder("dpsight"))
		return &Served{First: first, Whole: func() (Told, error) { return first, nil }}, err
	}
	if err != nil {
		return nil, err
	}
	r = leaveSuperseded(leaveTrials(r))
	r = r.quiet(r.Selection)
	b := page.NewBuilder(report.NewModel(r.Selection, nil).Title)
	breakdown := r.firstDocuments(b)
	out := &Served{runs: r, most: most}
	for i := range breakdown.Runs {
		row := &breakdown.Runs[i]
		at := slices.IndexFunc(r.Runs, func(run store.Run) bool { return run.ID == row.RunID })
		if at < 0 {
			continue
		}
		in, err := Read(r.Runs[at], 0)
		if err != nil {
			return nil, err
		}
		for _, d := range row.Devices {
			out.places = append(out.places, servedPlace{at, d.Device, d.Rank})
			b.ServedDevice(row.RunID, d.Device, d.Rank, eventsOn(&in, d.Device, d.Rank), d.At.Event, most)
		}
	}
	if out.First, err = told(b); err != nil {
		return nil, err
	}
	out.Whole = sync.OnceValues(func() (Told, error) {
		out.warm()
		m, err := r.Model("")
		if err != nil {
			b.Document("overhead", nil, err)
		}
		r.otherDocuments(b, m.Study)
		return told(b)
	})
	go out.Whole()
	return out, nil
}

func told(b *page.Builder) (t Told, err error) {
	t.About, t.Documents, err = b.Served()
	return t, err
}

// eventsOn is how many allocator events a device of a run has.
func eventsOn(in *schemas.Tables, device string, rank int32) int64 {
	if in.Report == nil {
		return 0
	}
	for _, v := range in.Report.Devices {
		if p := (identity.Place{Rank: v.Rank, Device: v.Device}); p.String() == device && p.Rank == rank {
			return v.Events
		}
	}
	return 0
}

// Devices is how many there are.
func (s *Served) Devices() int { return len(s.places) }

// warm reads the device that is looked at first, where there is no choice.
func (s *Served) warm() {
	if len(s.places) == 1 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.read(s.places[0].run) // what cannot be read is said to who asks for it
	}
}

// Device gives the Arrow streams of a device over a range of events: every block that lives in it, and points of all
// events. Of a range that is too long there are more points and no blocks.
func (s *Served) Device(i int, from, to int64, points int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place := s.places[i]
	run, err := s.read(place.run)
	if err != nil {
		return nil, err
	}
	k := slices.IndexFunc(run.devices, func(d blocks.Device) bool {
		return d.Device == place.name && d.Rank == place.rank
	})
	if k < 0 {
		return nil, fmt.Errorf("run %s has no blocks on %s", s.runs.Runs[place.run].ID, place.name)
	}
	d := &run.devices[k]
	if d.Events <= s.most {
		return page.Streams(d, nil)
	}
	from, to = max(0, from), min(to, d.Events)
	if to-from > s.most {
		line, err := s.points(run, place, timeline.EventRange{Device: place.name, From: &from, To: &to}, points)
		if err != nil {
			return nil, err
		}
		none := d.Within(1, 0)
		return page.Streams(&none, line)
	}
	key := servedWhole{place, points}
	line := run.whole[key]
	if line == nil {
		if line, err = s.points(run, place, timeline.EventRange{Device: place.name}, points); err != nil {
			return nil, err
		}
		clear(run.whole) // a page asks for as many points each time
		run.whole[key] = line
	}
	within := d.Within(from, to)
	return page.Streams(&within, line)
}

func (s *Served) points(run *servedRun, place servedPlace, within timeline.EventRange, points int) (
	*timeline.DeviceTimeline, error) {
	lines, err := timeline.CategoryTimeline(run.tables, within, points)
	if err != nil {
		return nil, err
	}
	for i := range lines.Devices {
		if d := &lines.Devices[i]; d.Device == place.name && d.Rank == place.rank {
			return d, nil
		}
	}
	return nil, fmt.Errorf("run %s has no timeline on %s", run.tables.Manifest.RunID, place.name)
}

// read reads the tables of a run, and keeps them until another's are wanted.
func (s *Served) read(run int) (*servedRun, error) {
	if s.last != nil && s.last.run == run {
		return s.last, nil
	}
	s.last = nil // two runs at once would take twice the memory
	in, err := Read(s.runs.Runs[run], blocks.Tables|timeline.CategoryTables)
	if err != nil {
		return nil, err
	}
	devices, err := blocks.Of(&in)
	if err != nil {
		return nil, err
	}
	s.last = &servedRun{run, in, devices, map[servedWhole]*timeline.DeviceTimeline{}}
	return s.last, nil
}
