package spool

import (
	"encoding/binary"
	"fmt"
)

// RecordSize is the size of a mark, of a tag and of slot 0, in bytes.
const RecordSize = 32

const (
	marksMagic   = "DPSM"
	marksVersion = 1
	// requestOffset is the offset in slot 0 at which the collector writes its request.
	requestOffset = 12
	// RequestDrain asks the agent to drain at its next mark.
	RequestDrain = 1
	// Answering is what the agent writes into slot 0 while it drains. The agent clears the request word when the
	// drain's frames are written.
	Answering = 2
)

// A Mark is one record of the marks file.
type Mark struct {
	K      uint32
	Thread uint16
	Kind   Kind
	Flags  uint8
	TimeNS int64
	A, B   uint64
}

// Append appends the record's 32 bytes.
func (m Mark) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.K)
	b = binary.LittleEndian.AppendUint16(b, m.Thread)
	b = append(b, byte(m.Kind), m.Flags)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.TimeNS))
	b = binary.LittleEndian.AppendUint64(b, m.A)
	return binary.LittleEndian.AppendUint64(b, m.B)
}

func parseMark(b []byte) Mark {
	_ = b[31]
	return Mark{
		K:      binary.LittleEndian.Uint32(b),
		Thread: binary.LittleEndian.Uint16(b[4:]),
		Kind:   Kind(b[6]), Flags: b[7],
		TimeNS: int64(binary.LittleEndian.Uint64(b[8:])),
		A:      binary.LittleEndian.Uint64(b[16:]),
		B:      binary.LittleEndian.Uint64(b[24:]),
	}
}

// MarksHeader is slot 0 of a marks file.
type MarksHeader struct {
	PID     uint32
	StartNS int64
}

// AppendMarksHeader appends slot 0, the header of a marks file.
func AppendMarksHeader(b []byte, h MarksHeader) []byte {
	b = append(b, marksMagic...)
	b = binary.LittleEndian.AppendUint16(b, marksVersion)
	b = binary.LittleEndian.AppendUint16(b, RecordSize)
	b = binary.LittleEndian.AppendUint32(b, h.PID)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.StartNS))
	return append(b, make([]byte, 8)...)
}

// writeErrorOffset is the offset in slot 0 of the error that stopped the agent from writing frames. The memory map of
// the marks has room for the error's number even on a full disk.
const writeErrorOffset = 24

// writeError is the number of the error that stopped the agent from writing frames; 0 if there was none, and in
// journals of older agents.
func writeError(marks []byte) uint32 {
	if len(marks) < RecordSize {
		return 0
	}
	return binary.LittleEndian.Uint32(marks[writeErrorOffset:])
}

// ScanMarks reads all records of a marks file in order of k. ScanMarks leaves out holes and the unused end.
func ScanMarks(b []byte) (MarksHeader, []Mark, error) {
	var h MarksHeader
	if len(b) < RecordSize {
		return h, nil, &TornError{0, "the marks' header is cut short"}
	}
	if string(b[:4]) != marksMagic {
		return h, nil, fmt.Errorf("not a marks file (it begins with %q)", b[:4])
	}
	if v, n := binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:]); v != marksVersion ||
		n != RecordSize {
		return h, nil, fmt.Errorf("marks version %d with records of %d bytes is not one that this dpsight reads "+
			"(%d, %d)", v, n, marksVersion, RecordSize)
	}
	h.PID = binary.LittleEndian.Uint32(b[8:])
	h.StartNS = int64(binary.LittleEndian.Uint64(b[16:]))
	var marks []Mark
	for k := 1; (k+1)*RecordSize <= len(b); k++ {
		m := parseMark(b[k*RecordSize:])
		// A record was never finished if its k is not the number of its slot, or if it has no kind or no time.
		if m.K == uint32(k) && m.Kind != 0 && m.TimeNS != 0 {
			marks = append(marks, m)
		}
	}
	return h, marks, nil
}

// usedMarks returns the length of a marks file up to the end of its last record.
func usedMarks(b []byte) int {
	for n := len(b) / RecordSize; n > 1; n-- {
		if m := parseMark(b[(n-1)*RecordSize:]); m.K != 0 {
			return n * RecordSize
		}
	}
	return min(len(b), RecordSize)
}

// A Tag records what the agent saw at an address at mark K.
type Tag struct {
	K       uint32
	Untag   bool // the owner let go
	Kind    TagKind
	DType   DType  // dtype of the tensor; 0 = not recorded; an untag has none
	Address uint64 // base address of the storage
	Bytes   int64  // bytes of the storage
	Name    uint32 // name id, 0 = none
	Module  uint32 // module id, 0 = none; [TagUser]: name id of the category
}

// Append appends the tag's 32 bytes:
//
//	k u32 | op u8 (1 tag, 2 untag) | kind u8 | dtype u8 | 1 zero byte | address u64 | bytes u64 | name u32 | module u32
func (t Tag) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, t.K)
	op := byte(1)
	if t.Untag {
		op = 2
	}
	b = append(b, op, byte(t.Kind), byte(t.DType), 0)
	b = binary.LittleEndian.AppendUint64(b, t.Address)
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Bytes))
	b = binary.LittleEndian.AppendUint32(b, t.Name)
	return binary.LittleEndian.AppendUint32(b, t.Module)
}

func parseTags(b []byte, tags []Tag) ([]Tag, error) {
	if len(b)%RecordSize != 0 {
		return tags, fmt.Errorf("a tag frame of %d bytes is no whole number of tags", len(b))
	}
	for ; len(b) > 0; b = b[RecordSize:] {
		tags = append(tags, Tag{
			K:     binary.LittleEndian.Uint32(b),
			Untag: b[4] == 2, Kind: TagKind(b[5]), DType: DType(b[6]),
			Address: binary.LittleEndian.Uint64(b[8:]),
			Bytes:   int64(binary.LittleEndian.Uint64(b[16:])),
			Name:    binary.LittleEndian.Uint32(b[24:]),
			Module:  binary.LittleEndian.Uint32(b[28:]),
		})
	}
	return tags, nil
}

// An Interval is the GPU time between the CUDA events recorded at two consecutive marks: begin u32 | end u32 | ns i64.
// Intervals lie between neighbouring marks and do not begin at a common origin, since torch returns milliseconds as
// float32, which loses microseconds after a minute.
type Interval struct {
	BeginK, EndK uint32
	NS           int64
}

const intervalSize = 16

// A HostReading is the host memory that the process had at a mark: k u32 | 4 reserved bytes | resident i64 |
// page-locked i64. The resident and page-locked memory are in bytes; -1 = the page-locked bytes are not known.
type HostReading struct {
	K           uint32
	RSSBytes    int64
	PinnedBytes int64
}

const hostReadingSize = 24

func parseHostReadings(b []byte, out []HostReading) ([]HostReading, error) {
	if len(b)%hostReadingSize != 0 {
		return out, fmt.Errorf("a host frame of %d bytes is no whole number of readings", len(b))
	}
	for ; len(b) > 0; b = b[hostReadingSize:] {
		out = append(out, HostReading{binary.LittleEndian.Uint32(b), int64(binary.LittleEndian.Uint64(b[8:])),
			int64(binary.LittleEndian.Uint64(b[16:]))})
	}
	return out, nil
}

// Append appends the interval's 16 bytes.
func (i Interval) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, i.BeginK)
	b = binary.LittleEndian.AppendUint32(b, i.EndK)
	return binary.LittleEndian.AppendUint64(b, uint64(i.NS))
}

func parseIntervals(b []byte, out []Interval) ([]Interval, error) {
	if len(b)%intervalSize != 0 {
		return out, fmt.Errorf("a times frame of %d bytes is no whole number of intervals", len(b))
	}
	for ; len(b) > 0; b = b[intervalSize:] {
		out = append(out, Interval{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]),
			int64(binary.LittleEndian.Uint64(b[8:]))})
	}
	return out, nil
}
