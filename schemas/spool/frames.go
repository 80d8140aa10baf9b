package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// A FrameType says what a frame's payload contains.
type FrameType uint8

// The types of frames. A reader skips types that it does not know.
const (
	FrameProcess     FrameType = 1  // JSON [ProcessInfo]; the first frame
	FrameEnvironment FrameType = 2  // JSON schemas.Environment
	FrameNames       FrameType = 3  // JSON {"names": [[id, "string"], …]}: ids that marks and tags use, from 1
	FrameModules     FrameType = 4  // JSON {"modules": [ModuleInfo, …]}
	FrameTags        FrameType = 5  // packed [Tag] records
	FrameAllocator   FrameType = 6  // pickle of torch's memory snapshot: events since the last one, and all segments
	FrameCheckpoint  FrameType = 7  // JSON [Checkpoint]; follows its FrameAllocator, if it has one
	FrameTimes       FrameType = 8  // packed [Interval] records
	FrameConfig      FrameType = 9  // JSON object: parameters the script reported
	FrameMetric      FrameType = 10 // JSON {"k":, "time_ns":, "name":, "value":}
	FramePrivacy     FrameType = 11 // JSON schemas.Privacy; later ones replace earlier ones
	FrameException   FrameType = 12 // JSON {"type":, "message":, "oom": bool}
	FrameOOM         FrameType = 13 // JSON [OOMInfo]
	FrameEnd         FrameType = 14 // JSON [EndInfo]; the last frame
	FramePlan        FrameType = 15 // JSON {"warmup":, "timed":}
	FrameDevices     FrameType = 16 // JSON {"devices": [DeviceInfo, …]}: devices used since the last such frame
	FramePrediction  FrameType = 17 // JSON [PredictionInfo]; later ones replace earlier ones
	FrameCode        FrameType = 18 // JSON {"files": [schemas.CodeFile, …]}; later ones replace earlier ones
	FrameFailure     FrameType = 19 // JSON [FailureInfo]
	FrameLines       FrameType = 20 // JSON [LinesInfo], with the lines since the last such frame
	FrameHolders     FrameType = 21 // JSON [HoldersInfo]
	FrameHost        FrameType = 22 // packed [HostReading] records
)

const (
	framesMagic   = "DPSF"
	framesVersion = 1
	frameHeader   = 16
	// maxFrame is the largest length of a frame. A larger length in a file means that the file is damaged.
	maxFrame = 8 << 30
)

// A Frame is one raw frame.
type Frame struct {
	Type    FrameType
	Payload []byte // a part of the journal's bytes, not a copy
	Offset  int64  // offset of the frame's header
}

// A TornError says where the intact part of a journal ends.
type TornError struct {
	Offset int64
	Reason string
}

func (e *TornError) Error() string {
	return fmt.Sprintf("journal torn at byte %d: %s", e.Offset, e.Reason)
}

// AppendHeader appends the file header of a frames file.
func AppendHeader(b []byte) []byte {
	b = append(b, framesMagic...)
	b = binary.LittleEndian.AppendUint16(b, framesVersion)
	return append(b, 0, 0)
}

// AppendFrame appends one frame.
func AppendFrame(b []byte, t FrameType, payload []byte) []byte {
	var h [frameHeader]byte
	h[0] = byte(t)
	binary.LittleEndian.PutUint64(h[8:], uint64(len(payload)))
	binary.LittleEndian.PutUint32(h[4:], checksum(h[:], payload))
	return append(append(b, h[:]...), payload...)
}

func checksum(header, payload []byte) uint32 {
	c := crc32.ChecksumIEEE(header[:4])
	c = crc32.Update(c, crc32.IEEETable, header[8:frameHeader])
	return crc32.Update(c, crc32.IEEETable, payload)
}

// ScanFrames splits a frames file into its whole frames. For a torn tail, ScanFrames returns the frames before the tail
// and a [TornError]. For a file that is no frames file, or has an unknown version, ScanFrames returns another error.
func ScanFrames(b []byte) ([]Frame, error) {
	if len(b) == 0 {
		return nil, &TornError{0, "no header"}
	}
	if len(b) < 8 {
		return nil, &TornError{0, "the header is cut short"}
	}
	if string(b[:4]) != framesMagic {
		return nil, fmt.Errorf("not a frames file (it begins with %q)", b[:4])
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != framesVersion {
		return nil, fmt.Errorf("frames version %d is not one that this dpsight reads (%d)", v, framesVersion)
	}
	var frames []Frame
	for at := 8; at < len(b); {
		rest := b[at:]
		if len(rest) < frameHeader {
			return frames, &TornError{int64(at), "a frame's header is cut short"}
		}
		n := binary.LittleEndian.Uint64(rest[8:])
		if n > maxFrame || n > uint64(len(rest)-frameHeader) {
			return frames, &TornError{int64(at), fmt.Sprintf("a frame of %d bytes is cut short", n)}
		}
		payload := rest[frameHeader : frameHeader+int(n)]
		if binary.LittleEndian.Uint32(rest[4:]) != checksum(rest, payload) {
			return frames, &TornError{int64(at), "a frame's checksum is wrong"}
		}
		frames = append(frames, Frame{FrameType(rest[0]), payload, int64(at)})
		at += frameHeader + int(n)
	}
	return frames, nil
}

// readBounded reads exactly n bytes. readBounded allocates memory only as bytes arrive, since a damaged file may claim
// a huge n.
func readBounded(r io.Reader, n uint64) ([]byte, error) {
	var b []byte
	for n > 0 {
		k := min(n, 1<<20)
		at := len(b)
		b = append(b, make([]byte, k)...)
		if m, err := io.ReadFull(r, b[at:]); err != nil {
			return b[:at+m], err
		}
		n -= k
	}
	return b, nil
}
