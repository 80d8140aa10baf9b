package selected

import (
	"cmp"
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

// Served has what a server sends about runs: the page's documents and, on request, the blocks of a device.
type Served struct {
	// First has the documents that the page needs to show anything. Whole returns all documents, for which the first
	// request reads the runs several more times.
	First Told
	Whole func() (Told, error)

	runs   *Runs
	places []servedPlace
	most   int64 // the most events that are sent one by one

	mu   sync.Mutex
	last *servedDevice
}

// Told is the page's facts about itself and the documents that commands print, as JSON.
type Told struct{ About, Documents []byte }

// servedPlace is one device of one run.
type servedPlace struct {
	run    int
	place  identity.Place
	events int64
}

// servedDevice is what was read about a device for the last request: all of its blocks or, if they are too many, the
// bytes by category.
type servedDevice struct {
	i      int // index into places
	all    *blocks.Device
	bytes  schemas.Tables
	whole  *timeline.DeviceTimeline // a line of all events, which is sent beside each window
	points int                      // number of points of whole
}

// Served reads what the page shows about the named runs, or about all runs of the store. Runs without tables appear
// only in the page's list.
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
			place, events := placeOf(&in, d.Device, d.Rank)
			out.places = append(out.places, servedPlace{at, place, events})
			b.ServedDevice(row.RunID, d.Device, d.Rank, events, d.At.Event, most)
		}
	}
	if out.First, err = told(b); err != nil {
		return nil, err
	}
	out.Whole = sync.OnceValues(func() (Told, error) {
		m, err := r.Model("")
		if err != nil {
			b.Document("overhead", nil, err)
		}
		r.otherDocuments(b, m.Study)
		return told(b)
	})
	go out.warm()
	return out, nil
}

func told(b *page.Builder) (t Told, err error) {
	t.About, t.Documents, err = b.Served()
	return t, err
}

// placeOf returns the place of a run's device by its name, and the number of its allocator events.
func placeOf(in *schemas.Tables, device string, rank int32) (p identity.Place, events int64) {
	if in.Report == nil {
		return p, 0
	}
	for _, v := range in.Report.Devices {
		if p = (identity.Place{Rank: v.Rank, Device: v.Device}); p.String() == device && p.Rank == rank {
			return p, v.Events
		}
	}
	return identity.Place{}, 0
}

// Devices returns the number of devices that the server can show.
func (s *Served) Devices() int { return len(s.places) }

// warm reads the device that the page shows first, if there is only one.
func (s *Served) warm() {
	if len(s.places) == 1 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.read(0) // an error is returned to the request
	}
}

// Device returns the Arrow streams of a device for a range of events: every block that lives within the range, and
// points of all events. If the range is too long, Device returns more points and no blocks.
func (s *Served) Device(i int, from, to int64, points int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &s.places[i]
	if at.events <= s.most {
		d, err := s.read(i)
		if err != nil {
			return nil, err
		}
		return page.Streams(d.all, nil)
	}
	from, to = max(0, from), min(to, at.events)
	window := store.Window{Rank: at.place.Rank, Device: at.place.Device, From: from, To: to}
	within, want := timeline.EventRange{}, blocks.Tables
	if to-from > s.most {
		within, want = timeline.EventRange{From: &from, To: &to}, blocks.Tables&^schemas.WantMemory
		window.From, window.To = 1, 0 // an empty window
	}
	var in schemas.Tables
	failed := make(chan error, 1)
	go func() { // blocks are read at the same time as the data for the line
		var err error
		in, err = ReadWithin(s.runs.Runs[at.run], want, window)
		failed <- err
	}()
	line, err := s.line(i, within, points)
	if err = cmp.Or(<-failed, err); err != nil {
		return nil, err
	}
	d := blocks.Within(&in, at.place, window.From, window.To)
	return page.Streams(&d, line)
}

// line returns points for a range of a device's events.
func (s *Served) line(i int, within timeline.EventRange, points int) (*timeline.DeviceTimeline, error) {
	d, err := s.read(i)
	if err != nil {
		return nil, err
	}
	whole := within == timeline.EventRange{}
	if whole && d.whole != nil && d.points == points {
		return d.whole, nil
	}
	place := s.places[i].place
	within.Device = place.String()
	lines, err := timeline.CategoryTimeline(d.bytes, within, points)
	if err != nil {
		return nil, err
	}
	for k := range lines.Devices {
		if t := &lines.Devices[k]; t.Device == within.Device && t.Rank == place.Rank {
			if whole {
				d.whole, d.points = t, points
			}
			return t, nil
		}
	}
	return nil, fmt.Errorf("run %s has no timeline on %s", d.bytes.Manifest.RunID, within.Device)
}

// read reads a device and keeps the result until another device is requested.
func (s *Served) read(i int) (*servedDevice, error) {
	if s.last != nil && s.last.i == i {
		return s.last, nil
	}
	s.last = nil // keeping two would take twice the memory
	at, d := &s.places[i], &servedDevice{i: i}
	run := s.runs.Runs[at.run]
	if at.events > s.most {
		in, err := Read(run, timeline.CategoryTables)
		if err != nil {
			return nil, err
		}
		d.bytes, s.last = in, d
		return d, nil
	}
	in, err := Read(run, blocks.Tables)
	if err != nil {
		return nil, err
	}
	devices, err := blocks.Of(&in)
	if err != nil {
		return nil, err
	}
	k := slices.IndexFunc(devices, func(d blocks.Device) bool {
		return d.Device == at.place.String() && d.Rank == at.place.Rank
	})
	if k < 0 {
		return nil, fmt.Errorf("run %s has no blocks on %s", run.ID, at.place)
	}
	d.all, s.last = &devices[k], d
	return d, nil
}
