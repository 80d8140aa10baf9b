package collect

import (
	"path/filepath"
	"time"

	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/store"
)

// A stepCounter follows the live journals of a run and counts the steps that have ended. A stepCounter reads each
// record once.
type stepCounter struct {
	dir       string
	processes map[string]*followed
}

type followed struct {
	journal *spool.Follower
	steps   spool.StepCount
}

func newStepCounter(dir string) *stepCounter {
	return &stepCounter{dir: dir, processes: map[string]*followed{}}
}

// Recording returns how far a run has come that is still being recorded, or nil for other runs. The mark of a step is
// on disk as soon as the step has ended. A step's events are on disk after the next drain, which writes to the file of
// frames.
func Recording(dir string) *store.Progress {
	if !Running(dir) {
		return nil
	}
	folder := filepath.Join(dir, spool.Dir)
	p := &store.Progress{Steps: newStepCounter(folder).read(), Written: -1}
	journals, err := spool.LiveJournals(folder)
	if err != nil {
		return p
	}
	for _, marks := range journals {
		if written, err := spool.LastFrame(marks); err == nil {
			if ago := max(0, time.Since(written)); p.Written < 0 || ago < p.Written {
				p.Written = ago
			}
		}
	}
	return p
}

// read returns the number of steps of the process that is furthest, or -1 before there is a journal.
func (s *stepCounter) read() int64 {
	paths, err := spool.LiveJournals(s.dir)
	if err != nil {
		return -1
	}
	furthest := int64(-1)
	for _, path := range paths {
		p := s.processes[path]
		if p == nil {
			p = &followed{journal: spool.Follow(path)}
			s.processes[path] = p
		}
		// Marks that cannot be read now are read at the next look.
		_ = p.journal.Marks(func(m spool.Mark) { p.steps.Add(m) })
		furthest = max(furthest, p.steps.Steps())
	}
	return furthest
}
