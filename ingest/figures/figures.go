package figures

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpsight/dpsight/schemas"
)

// A Run has the data in a file about one run.
type Run struct {
	Name           string
	Params         map[string]any
	Status, Reason string // as the file states; [schemas.StatusOK] if it does not
	StartNS, EndNS int64  // in Unix time; 0 = the file does not state it
	GPU            string // name of the GPU; empty = the file does not state it
	Devices        []Device
	Notes          []string // notes on the figures, each a sentence
}

// A Device has the data in a file about one device of one process.
type Device struct {
	Rank, Device int32
	// Peak and PeakReserved are the highest values of the run, nil if the file does not say.
	Peak, PeakReserved *int64
	// Why says what the peak is, if it does not come from torch's own counter.
	Why    string
	Steps  []Step
	Phases []Phase
}

// A Phase is a stretch of time between two moments for which the file has figures. StartNS and EndNS are Unix time, or
// count from an unknown beginning; both are 0 if the file has no times.
type Phase struct {
	Name           string
	Step           int64 // number of the step; -1 = in none
	StartNS, EndNS int64
	GPUNS          *int64
	Begin, End     Memory
	Peak           *int64 // highest allocated within the step
}

// A Step is one training step.
type Step struct {
	Number          int64
	StartNS, EndNS  int64
	GPUNS           *int64
	Begin, End      Memory
	Peak            *int64
	Samples, Tokens int64 // numbers in the step; 0 = the file does not state them
}

// Memory has the values of torch's counters at one moment.
type Memory struct{ Allocated, Reserved *int64 }

// A Kind is a kind of file with figures.
type Kind string

// None is the Kind of files that package figures does not read.
const None Kind = ""

// A format has the function that reads one kind of file. The function's name argument is the file's name, without
// folder and compression suffix.
type format struct {
	kind Kind
	read func(r io.Reader, name string) ([]Run, error)
}

var formats = []format{
	{schemas.ImportComponents, readComponents},
	{schemas.ImportSweep, readSweep},
	{schemas.ImportStages, readStages},
	{schemas.ImportSweepTable, readSweepTable},
	{schemas.ImportTrainerLog, readTrainerLog},
	{schemas.ImportTrainerSummary, readTrainerSummary},
	{schemas.ImportTrace, readTrace},
	{schemas.ImportMemoryTimeline, readMemoryTimeline},
}

// Read returns the runs in a file. If a file has no run, Read returns an error.
func Read(kind Kind, r io.Reader, name string) ([]Run, error) {
	for _, f := range formats {
		if f.kind != kind {
			continue
		}
		runs, err := f.read(unmarked(r), name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("it begins like %s: %w", kind, err)
		case len(runs) == 0:
			return nil, fmt.Errorf("%s without a run", kind)
		}
		nameApart(runs)
		return runs, nil
	}
	return nil, errors.New("not a file with figures")
}

// byteOrderMark is what some editors write at the beginning of a file. byteOrderMark is not part of the text.
const byteOrderMark = "\xef\xbb\xbf"

// unmarked returns a reader that skips a byte order mark at the beginning.
func unmarked(r io.Reader) io.Reader {
	text := bufio.NewReader(r)
	if head, _ := text.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		text.Discard(len(byteOrderMark))
	}
	return text
}

// nameApart numbers the runs of a file that have the same name.
func nameApart(runs []Run) {
	seen := map[string]int{}
	for i := range runs {
		name := runs[i].Name
		if seen[name]++; seen[name] > 1 {
			runs[i].Name = fmt.Sprintf("%s-%d", name, seen[name])
		}
	}
}

// maxDocument is the largest size, in bytes, of files that are read as a whole. The tools that write these files write
// kilobytes.
const maxDocument = 64 << 20

// document reads a whole file.
func document(r io.Reader) ([]byte, error) {
	return io.ReadAll(limited(r))
}

// limited returns a reader that fails if a file is too long. The reader does not truncate the file, since the rest
// could look like a complete file.
func limited(r io.Reader) io.Reader { return &limitedReader{r, maxDocument} }

type limitedReader struct {
	r    io.Reader
	left int
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, fmt.Errorf("it is larger than %d MiB, and such files are small", maxDocument>>20)
	}
	return n, err
}

// A valueReader limits the size of each single value of a JSON document, since the decoder buffers a value as a whole.
type valueReader struct {
	r          io.Reader
	d          *json.Decoder
	read, most int64 // bytes that were read, and the most that may be read
}

// decoderOf returns a decoder that decodes a document value by value. A value may have at most `most` bytes.
func decoderOf(r io.Reader, most int64) *json.Decoder {
	v := &valueReader{r: r, most: most}
	v.d = json.NewDecoder(v)
	return v.d
}

func (v *valueReader) Read(p []byte) (int, error) {
	// The decoder reads more only while it has not yet the whole value at its offset.
	if at := v.d.InputOffset(); v.read-at > v.most {
		return 0, fmt.Errorf("at byte %d it has a value of more than %d MiB", at, v.most>>20)
	}
	n, err := v.r.Read(p)
	v.read += int64(n)
	return n, err
}

const (
	mib = 1 << 20
	gib = 1 << 30
	// most is the largest size and time that counts as possible: a petabyte, and the year 2242.
	most = 1 << 50
)

// bytesOf converts a size v to bytes. unit is the number of bytes in v's unit. bytesOf returns nil if the size is
// absent or impossible.
func bytesOf(v *float64, unit float64) *int64 {
	if v == nil || !(*v >= 0 && *v*unit < most) {
		return nil
	}
	return new(int64(math.Round(*v * unit)))
}

// nanoseconds converts a time v to nanoseconds. unit is the number of nanoseconds in v's unit. nanoseconds returns 0 if
// the time is absent or impossible.
func nanoseconds(v *float64, unit float64) int64 {
	if v == nil || !(*v > 0 && *v*unit < math.MaxInt64/2) {
		return 0
	}
	return int64(math.Round(*v * unit))
}

// within returns the peak of a stretch of time, from the values of torch's peak counter before and after it. If the
// counter rose, its new value is the stretch's peak. Otherwise the peak is unknown, and within returns nil.
func within(before, after *int64) *int64 {
	if before == nil || after == nil || *after <= *before {
		return nil
	}
	return after
}

// higher returns the higher of two values. Either may be unknown (nil).
func higher(a, b *int64) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil || *a > *b:
		return a
	}
	return b
}

// methods maps the names that other tools use for methods to dpsight's names.
var methods = map[string]string{
	"StandardTrainer": "vanilla", "standard": "vanilla", "no_dp": "vanilla",
	"DPSGDTrainer": "dpsgd", "DPGhostClippingTrainer": "ghost", "DPFastGradientClippingTrainer": "fgc",
	"flash_clip": "flash", "bookkeeping": "bk", "ghost_bk": "bk",
	"flash_clip_bookkeeping": "flash_bk", "flash_clip_bk": "flash_bk",
}

func methodOf(name string) string { return cmp.Or(methods[name], name) }
