package collect

import (
	"encoding/binary"
	"os"

	"github.com/dpsight/dpsight/schemas/spool"
)

// A stepCounter follows the live journals of a run and counts the steps that ended, without reading a record twice.
type stepCounter struct {
	dir     string
	offsets map[string]int64
	steps   map[string]int64
}

func newStepCounter(dir string) *stepCounter {
	return &stepCounter{dir: dir, offsets: map[string]int64{}, steps: map[string]int64{}}
}

// Offsets of fields in a record of the marks file (see package spool).
const (
	markK     = 0
	markKind  = 6
	markFlags = 7
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
		furthest = max(furthest, s.steps[path])
	}
	return furthest
}

func (s *stepCounter) follow(path string) {
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
		used, steps := 0, int64(0)
		for i := 0; i+spool.RecordSize <= n; i += spool.RecordSize {
			if binary.LittleEndian.Uint32(buf[i+markK:]) == 0 {
				continue
			}
			used = i + spool.RecordSize
			switch spool.Kind(buf[i+markKind]) {
			case spool.StepEnd:
				steps++
			case spool.Updated:
				steps += int64(buf[i+markFlags] & spool.FlagEnds)
			}
		}
		s.steps[path] += steps
		at += int64(used)
		if used == 0 || n < len(buf) {
			break
		}
	}
	s.offsets[path] = at
}
