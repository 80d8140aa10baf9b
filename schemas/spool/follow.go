package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/dpsight/dpsight/schemas"
)

// A Follower reads a live journal while its process writes it. A Follower only reads, and passes on each mark and each
// frame once.
type Follower struct {
	path     string // path of the marks file
	marksAt  int64
	framesAt int64
}

// Follow begins to follow the journal of a marks file.
func Follow(marksPath string) *Follower { return &Follower{path: marksPath} }

// Path returns the path of the marks file.
func (f *Follower) Path() string { return f.path }

// followChunk is how many bytes of marks are read at a time.
const followChunk = 4096 * RecordSize

// Marks calls each with the marks that were written since the last call, in order.
func (f *Follower) Marks(each func(Mark)) error {
	file, err := schemas.OpenRegular(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if f.marksAt == 0 {
		var head [RecordSize]byte
		if _, err := file.ReadAt(head[:], 0); err != nil {
			return ignoreEOF(err)
		}
		if _, _, err := ScanMarks(head[:]); err != nil {
			return err
		}
		f.marksAt = RecordSize
	}
	buf := make([]byte, followChunk)
	for {
		n, err := file.ReadAt(buf, f.marksAt)
		if err := ignoreEOF(err); err != nil {
			return err
		}
		used := f.records(buf[:n], each)
		f.marksAt += int64(used)
		if used == 0 || n < len(buf) {
			return nil
		}
	}
}

// records calls each with the records in the part b of the marks file, and returns how many bytes of b it used. The
// file is allocated ahead of use, so zeros follow the last record. A zero record before other records was never
// finished, since the writing thread died.
func (f *Follower) records(b []byte, each func(Mark)) (used int) {
	for at := 0; at+RecordSize <= len(b); at += RecordSize {
		m := parseMark(b[at:])
		if int64(m.K)*RecordSize == f.marksAt+int64(at) && m.Kind != 0 && m.TimeNS != 0 {
			each(m)
			used = at + RecordSize
		}
	}
	return used
}

// Frames calls each with the whole frames that were written since the last call. A payload is valid only during that
// call.
func (f *Follower) Frames(each func(Frame)) error {
	file, err := schemas.OpenRegular(framesOf(f.path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return err
	}
	if f.framesAt == 0 {
		head := make([]byte, 8)
		if _, err := file.ReadAt(head, 0); err != nil {
			return ignoreEOF(err)
		}
		if _, err := ScanFrames(head); err != nil {
			return err
		}
		f.framesAt = int64(len(head))
	}
	for {
		frame, next, err := nextFrame(file, f.framesAt, st.Size())
		if err != nil || next == 0 {
			return err
		}
		each(frame)
		f.framesAt = next
	}
}

// nextFrame reads the frame at an offset. nextFrame returns next = 0 if the frame is not whole yet.
func nextFrame(file *os.File, at, size int64) (frame Frame, next int64, err error) {
	var head [frameHeader]byte
	if size-at < frameHeader {
		return frame, 0, nil
	}
	if _, err := file.ReadAt(head[:], at); err != nil {
		return frame, 0, ignoreEOF(err)
	}
	n := binary.LittleEndian.Uint64(head[8:])
	if n > maxFrame {
		return frame, 0, &TornError{at, fmt.Sprintf("a frame says that it has %d bytes", n)}
	}
	if size-at-frameHeader < int64(n) {
		return frame, 0, nil
	}
	payload, err := readBounded(io.NewSectionReader(file, at+frameHeader, int64(n)), n)
	if err != nil {
		return frame, 0, ignoreEOF(err)
	}
	if binary.LittleEndian.Uint32(head[4:]) != checksum(head[:], payload) {
		return frame, 0, &TornError{at, "a frame's checksum is wrong"}
	}
	return Frame{FrameType(head[0]), payload, at}, at + frameHeader + int64(n), nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// A StepCount counts the steps of one process by its marks. The agent may end a step at an optimizer's update before it
// has seen a second optimizer. Once the agent has seen a second optimizer, the second optimizer's updates end steps. If
// the first optimizer, such as a discriminator's, still makes updates, the steps that it ended earlier do not count.
type StepCount struct {
	ended   map[uint64]int64 // number of steps, by the optimizer whose update ended them
	updates map[uint64]int64 // number of updates, by the optimizer
	latest  uint64           // optimizer that updated last
	trained bool             // some backward has run
}

// Add counts a mark, and reports whether a step ended with it.
func (c *StepCount) Add(m Mark) (ends bool) {
	switch m.Kind {
	case BackwardBegin:
		c.trained = true
	case OptimizerEnd, Updated:
		c.updated(m)
		ends = m.Kind == Updated && m.Flags&FlagEnds != 0
	case StepEnd:
		ends = true
	}
	if ends {
		if c.ended == nil {
			c.ended = map[uint64]int64{}
		}
		c.ended[c.latest]++
	}
	return ends
}

func (c *StepCount) updated(m Mark) {
	if m.Kind == OptimizerEnd && m.Flags&FlagInitializes != 0 {
		return
	}
	c.latest = m.A
	if c.trained { // an update before the first backward may only have made the optimizer's state, and ended no step
		if c.updates == nil {
			c.updates = map[uint64]int64{}
		}
		c.updates[c.latest]++
	}
}

// Steps returns how many steps have ended.
func (c *StepCount) Steps() (n int64) {
	for optimizer, ended := range c.ended {
		if len(c.ended) == 1 || c.updates[optimizer] <= ended {
			n += ended
		}
	}
	return n
}
