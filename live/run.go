package live

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/store"
)

// A run follows the files of one run while it is recorded.
type run struct {
	dir       string
	manifest  *schemas.Manifest
	processes map[string]*process
	samples   store.Growing[schemas.Sample]
	host      store.Growing[schemas.HostSample]
	used      sampled
	resident  sampled
}

// sampled is a line made of samples, for example of the device's memory. Each point keeps its highest sample.
type sampled struct{ line line }

func (s *sampled) add(ns, bytes int64) {
	s.line.add(page.LivePoint{FromNS: ns, TimeNS: ns, ToNS: ns, Allocated: bytes, Low: bytes})
}

func (s *sampled) list() (out []page.LiveSample) {
	for i := range s.line.points {
		out = append(out, page.LiveSample{TimeNS: s.line.points[i].TimeNS, Bytes: s.line.points[i].Allocated})
	}
	return out
}

func openRun(dir string) *run {
	return &run{dir: dir, processes: map[string]*process{},
		samples: store.Growing[schemas.Sample]{Dir: dir, Table: schemas.Samples},
		host:    store.Growing[schemas.HostSample]{Dir: dir, Table: schemas.HostSamples}}
}

// read reads what was written to the run's files since the last call. read returns the run's state so far.
func (r *run) read(now time.Time) *page.Live {
	l := &page.Live{RunID: filepath.Base(r.dir), Name: filepath.Base(r.dir), NowNS: now.UnixNano(),
		Status: schemas.StatusRunning, Processes: []page.LiveProcess{}, Findings: []page.LiveFinding{}}
	if r.manifest == nil {
		m, err := schemas.ReadManifest(r.dir)
		if err != nil { // the collector may be writing the manifest
			l.Trouble = err.Error()
			l.StartNS = l.NowNS
			return l
		}
		r.manifest = m
	}
	m := r.manifest
	l.RunID, l.Name, l.Bare, l.StartNS = m.RunID, m.Name, m.Bare, m.Start.UnixNano()
	l.Predicted = m.Source == schemas.Predicted
	for _, g := range m.GPUs {
		if l.LimitBytes == 0 || g.TotalBytes < l.LimitBytes {
			l.LimitBytes, l.GPU = g.TotalBytes, g.Name
		}
	}
	trouble := func(err error) {
		if err != nil && l.Trouble == "" {
			l.Trouble = err.Error()
		}
	}
	paths, err := spool.LiveJournals(filepath.Join(r.dir, spool.Dir))
	trouble(err)
	for _, path := range paths {
		if r.processes[path] == nil {
			r.processes[path] = follow(path)
		}
		if err := r.processes[path].read(); !errors.Is(err, fs.ErrNotExist) { // the journal has just been sealed
			trouble(err)
		}
	}
	trouble(r.samples.Read(func(s *schemas.Sample) { r.used.add(s.TimeNS, s.UsedBytes) }))
	trouble(r.host.Read(func(s *schemas.HostSample) { r.resident.add(s.TimeNS, s.RSSBytes) }))
	l.Samples, l.Host = r.used.list(), r.resident.list()
	for _, p := range r.processes {
		l.Processes = append(l.Processes, p.now())
		l.Planned = max(l.Planned, p.planned(m.Bare))
	}
	slices.SortFunc(l.Processes, func(a, b page.LiveProcess) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.PID, b.PID))
	})
	for i := range l.Processes {
		if l.Predicted { // the phantom GPU computes nothing, so step times have no meaning
			l.Processes[i].LastNS, l.Processes[i].MedianNS = 0, 0
		}
		l.Findings = append(l.Findings, findings(&l.Processes[i], l.LimitBytes)...)
	}
	slices.SortStableFunc(l.Findings, func(a, b page.LiveFinding) int { return cmp.Compare(b.Step, a.Step) })
	return l
}

// last returns the final state of a run that is no longer recorded. The run's journal may already be sealed.
func (r *run) last(now time.Time) *page.Live {
	l := r.read(now)
	l.Ended = true
	if m, err := schemas.ReadManifest(r.dir); err == nil {
		l.Status = m.Status
		if m.End != nil {
			l.NowNS = m.End.UnixNano()
		}
	}
	return l
}
