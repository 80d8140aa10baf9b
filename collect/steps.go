package collect

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"time"

	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/store"
)

// A stepCounter follows the live journals of a run and counts the steps that ended, without reading a record twice.
type stepCounter struct {
	dir     string
	offsets map[string]int64
	steps   map[string]*stepCount
}

// stepCount is the steps of one process. The agent ends a step before it has seen a second optimizer, whose updates are
// those that end steps from then on: the first one's have ended none where it goes on updating (a discriminator).
type stepCount struct {
	ended   map[uint64]int64 // steps, by the optimizer whose update ended them
	updates map[uint64]int64 // by the optimizer
	latest  uint64           // optimizer that updated last
	trained bool             // something ran backward
}

func (c *stepCount) updated(record []byte) {
	if spool.Kind(record[markKind]) == spool.OptimizerEnd && record[markFlags]&spool.FlagInitializes != 0 {
		return
	}
	c.latest = binary.LittleEndian.Uint64(record[markA:])
	if c.trained { // an update before that may only have made the optimizer's state, and ended no step
		c.updates[c.latest]++
	}
}

func (c *stepCount) steps() (n int64) {
	for optimizer, ended := range c.ended {
		if len(c.ended) == 1 || c.updates[optimizer] <= ended {
			n += ended
		}
	}
	return n
}

func newStepCounter(dir string) *stepCounter {
	return &stepCounter{dir: dir, offsets: map[string]int64{}, steps: map[string]*stepCount{}}
}

// Recording says how far a run is that is still being recorded; it is nil where nothing is recorded any more. Each
// step's mark is on disk when it has ended, its events are after the next drain, which writes the file of frames.
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

// Offsets of fields in a record of the marks file (see package spool).
const (
	markK     = 0
	markKind  = 6
	markFlags = 7
	markA     = 16
)

// read gives the steps of the process that is furthest, -1 before there is a journal.
func (s *stepCounter) read() int64 {
	paths, err := spool.LiveJournals(s.dir)
	if err != nil {
		return -1
	}
	furthest := int64(-1)
	for _, path := range paths {
		s.follow(path)
		furthest = max(furthest, s.steps[path].steps())
	}
	return furthest
}

func (s *stepCounter) follow(path string) {
	count := s.steps[path]
	if count == nil {
		count = &stepCount{ended: map[uint64]int64{}, updates: map[uint64]int64{}}
		s.steps[path] = count
	}
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	at := max(s.offsets[path], spool.RecordSize)
	buf := make([]byte, 4096*spool.RecordSize)
	for {
		n, _ := f.ReadAt(buf, at)
		// The file is allocated ahead of use, so what follows the last record is zeros; a zero record before
		// others was never finished.
		used := 0
		for i := 0; i+spool.RecordSize <= n; i += spool.RecordSize {
			if binary.LittleEndian.Uint32(buf[i+markK:]) == 0 {
				continue
			}
			used = i + spool.RecordSize
			switch spool.Kind(buf[i+markKind]) {
			case spool.BackwardBegin:
				count.trained = true
			case spool.StepEnd:
				count.ended[count.latest]++
			case spool.OptimizerEnd:
				count.updated(buf[i:])
			case spool.Updated:
				count.updated(buf[i:])
				if buf[i+markFlags]&spool.FlagEnds != 0 {
					count.ended[count.latest]++
				}
			}
		}
		at += int64(used)
		if used == 0 || n < len(buf) {
			break
		}
	}
	s.offsets[path] = at
}
