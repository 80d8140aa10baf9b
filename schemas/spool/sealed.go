package spool

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/internal/level"
)

const (
	sealedMagic = "DPSJ"
	sealedPlain = 1 // the bytes of the two files
	sealedSplit = 2 // the bytes, taken apart into streams
	sealedFiner = 3 // the bytes, taken apart into more streams: see [apart]
	// maxSplit is the largest size of journals that [apart] splits: splitting takes several times a journal's size in
	// memory.
	maxSplit = 256 << 20
	// maxDecoded is the largest size to which a sealed journal may unpack in memory.
	maxDecoded = 16 << 30
)

// Pack writes a sealed journal from the bytes of its two files.
func Pack(w io.Writer, marks, frames []byte) error {
	marks = marks[:usedMarks(marks)]
	version, parts := uint16(sealedPlain), [][]byte{marks, frames}
	if len(marks)+len(frames) <= maxSplit {
		split := apart(marks, frames)
		// If the files cannot be restored from their parts, they are stored unchanged, since sealing must not lose a
		// byte.
		m, f, err := together(split, sealedFiner)
		if err == nil && bytes.Equal(m, marks) && bytes.Equal(f, frames) {
			version, parts = sealedFiner, split
		}
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(level.Best))
	if err != nil {
		return err
	}
	out := [][]byte{append(binary.LittleEndian.AppendUint16([]byte(sealedMagic), version), flagSeal, 0)}
	for _, p := range parts {
		out = append(out, binary.LittleEndian.AppendUint64(nil, uint64(len(p))), p)
	}
	out = append(out, trailerOf(marks, frames).bytes())
	for _, b := range out {
		if _, err := z.Write(b); err != nil {
			z.Close()
			return err
		}
	}
	return z.Close()
}

// Unpack returns the bytes of the two files in a sealed journal.
func Unpack(path string) (marks, frames []byte, err error) {
	f, err := schemas.OpenRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxMemory(maxDecoded))
	if err != nil {
		return nil, nil, err
	}
	defer z.Close()
	return unsealed(z)
}

// unsealed reads the uncompressed content of a sealed journal, as [Pack] wrote it.
func unsealed(z io.Reader) (marks, frames []byte, err error) {
	var h [8]byte
	if _, err := io.ReadFull(z, h[:]); err != nil {
		return nil, nil, &DamagedError{fmt.Errorf("not a sealed journal: %w", err)}
	}
	if string(h[:4]) != sealedMagic {
		return nil, nil, fmt.Errorf("not a sealed journal (it begins with %q)", h[:4])
	}
	n, version := 0, binary.LittleEndian.Uint16(h[4:])
	switch version {
	case sealedPlain:
		n = 2
	case sealedSplit:
		n = nSplit
	case sealedFiner:
		n = nParts
	default:
		return nil, nil, fmt.Errorf("journal version %d is not one that this dpsight reads (%d to %d)", version,
			sealedPlain, sealedFiner)
	}
	parts := make([][]byte, n)
	for i := range parts {
		var size [8]byte
		if _, err := io.ReadFull(z, size[:]); err != nil {
			return nil, nil, &DamagedError{fmt.Errorf("it is cut short: %w", err)}
		}
		if parts[i], err = readBounded(z, binary.LittleEndian.Uint64(size[:])); err != nil {
			return nil, nil, &DamagedError{fmt.Errorf("it is cut short: %w", err)}
		}
	}
	var sealed []byte
	if h[6]&flagSeal != 0 {
		if sealed, err = readBounded(z, trailerSize); err != nil {
			return nil, nil, &DamagedError{fmt.Errorf("it is cut short: %w", err)}
		}
	}
	if err := atEnd(z); err != nil {
		return nil, nil, &DamagedError{err}
	}
	if n == 2 {
		marks, frames = parts[0], parts[1]
	} else if marks, frames, err = together(parts, version); err != nil {
		return nil, nil, &DamagedError{err}
	}
	if sealed != nil {
		if err := verify(sealed, marks, frames); err != nil {
			return nil, nil, &DamagedError{err}
		}
	}
	return marks, frames, nil
}

// The parts of a split journal: its marks, its frames without the payloads that follow, its tags, the streams of
// its pickles, its intervals, and its tags' addresses. In version 2 the intervals are among the frames and the
// addresses among the tags. Streams are as [streams.stored] returns them.
const (
	partMarks = iota
	partFrames
	partTags
	partStreams
	nSplit        = partStreams + nStreams
	partIntervals = nSplit
	partAddresses = nSplit + 1
	nParts        = nSplit + 2
)

const filesHeader = 8 // bytes of a frames file's header

// apart splits a journal into parts. apart returns nil if the journal does not have the usual form.
func apart(marks, frames []byte) [][]byte {
	if len(marks) < RecordSize || len(frames) < filesHeader {
		return nil
	}
	all, err := ScanFrames(frames)
	if err != nil && len(all) == 0 {
		return nil
	}
	parts := make([][]byte, nParts)
	parts[partMarks] = append(append([]byte(nil), marks[:RecordSize]...), columns(marks[RecordSize:], RecordSize,
		markCounters)...)
	// The number of whole frames comes first. The bytes after the last whole frame are stored unchanged.
	rest := binary.LittleEndian.AppendUint64(nil, uint64(len(all)))
	rest = append(rest, frames[:filesHeader]...)
	var tags, intervals []byte
	var s streams
	for i := range s { // room for the streams of a usual journal, or less: a growing slice is copied five times
		s[i] = make([]byte, 0, len(frames)/8)
	}
	s[streamCode] = make([]byte, 0, len(frames)/2)
	end := filesHeader
	for _, f := range all {
		begin := int(f.Offset) + frameHeader
		end = begin + len(f.Payload)
		rest = append(rest, frames[f.Offset:begin]...)
		switch f.Type {
		case FrameTags:
			tags = append(tags, f.Payload...)
		case FrameTimes:
			intervals = append(intervals, f.Payload...)
		case FrameAllocator:
			s.split(f.Payload)
		default:
			rest = append(rest, f.Payload...)
		}
	}
	parts[partFrames] = append(rest, frames[end:]...)
	tags, addresses := lift(tags, RecordSize, tagAddress, addressSize)
	parts[partTags], parts[partAddresses] = columns(tags, RecordSize-addressSize, tagCounters),
		distances(addresses, addressSize)
	parts[partIntervals] = columns(intervals, intervalSize, intervalCounters)
	for i := range s {
		switch at := partStreams + i; i {
		case streamLong6:
			parts[at] = distances(s[i], streamWidth[i])
		case streamText:
			parts[at] = counted(s[i])
		default:
			parts[at] = s.stored(i)
		}
	}
	return parts
}

// together is the inverse of apart.
func together(parts [][]byte, version uint16) (marks, frames []byte, err error) {
	if version == sealedFiner && len(parts) != nParts || version == sealedSplit && len(parts) != nSplit {
		return nil, nil, errStreams
	}
	marks, rest := parts[partMarks], parts[partFrames]
	if len(marks) < RecordSize || len(rest) < 8+filesHeader {
		return nil, nil, errStreams
	}
	marks = append(append([]byte(nil), marks[:RecordSize]...), records(marks[RecordSize:], RecordSize, markCounters)...)
	var tags, intervals []byte
	var s streams
	size := 0 // size of all frames, so that room for them is made once
	if version == sealedSplit {
		tags = records(parts[partTags], RecordSize, tagCounters)
		for i := range s {
			s.load(i, parts[partStreams+i])
		}
	} else {
		addresses, err := undistances(parts[partAddresses], addressSize)
		if err != nil {
			return nil, nil, err
		}
		tags = lower(records(parts[partTags], RecordSize-addressSize, tagCounters), addresses, RecordSize, tagAddress,
			addressSize)
		intervals = records(parts[partIntervals], intervalSize, intervalCounters)
		for i := range s {
			switch p := parts[partStreams+i]; i {
			case streamLong6:
				s[i], err = undistances(p, streamWidth[i])
			case streamText:
				s[i], err = uncounted(p)
			default:
				s.load(i, p)
			}
			if err != nil {
				return nil, nil, err
			}
		}
	}
	for _, b := range append(s[:], rest, tags, intervals) {
		size += len(b)
	}
	n := binary.LittleEndian.Uint64(rest)
	rest = rest[8:]
	frames = make([]byte, 0, size)
	frames, rest = append(frames, rest[:filesHeader]...), rest[filesHeader:]
	for range n {
		if len(rest) < frameHeader {
			return nil, nil, errStreams
		}
		kind, size := FrameType(rest[0]), binary.LittleEndian.Uint64(rest[8:])
		if size > maxFrame {
			return nil, nil, errStreams
		}
		frames, rest = append(frames, rest[:frameHeader]...), rest[frameHeader:]
		length := int(size)
		from := &rest
		switch kind {
		case FrameTags:
			from = &tags
		case FrameTimes:
			if version != sealedSplit {
				from = &intervals
			}
		case FrameAllocator:
			if frames, err = s.join(frames, length); err != nil {
				return nil, nil, err
			}
			continue
		}
		if length > len(*from) {
			return nil, nil, errStreams
		}
		frames, *from = append(frames, (*from)[:length]...), (*from)[length:]
	}
	return marks, append(frames, rest...), nil
}
