package spool

import "encoding/binary"

// A sealed journal stores the bytes that repeat and the numbers that count up separately, so that it compresses to a
// third of the size. The code in columns.go knows nothing else about the meaning of the bytes. [Pack] checks that the
// bytes can be restored.

// planes turns values of width bytes each into columns: all first bytes, then all second bytes, and so on. A rest
// shorter than a value follows the columns.
func planes(b []byte, width int) []byte {
	out := make([]byte, 0, len(b))
	n := len(b) / width
	for j := range width {
		for i := range n {
			out = append(out, b[i*width+j])
		}
	}
	return append(out, b[n*width:]...)
}

// rows is the inverse of planes.
func rows(b []byte, width int) []byte {
	out := make([]byte, len(b))
	n := len(b) / width
	for j := range width {
		for i := range n {
			out[i*width+j] = b[j*n+i]
		}
	}
	copy(out[n*width:], b[n*width:])
	return out
}

// differences replaces, in place, the little-endian value of width bytes at an offset in each record of size bytes by
// its difference from the value in the record before.
func differences(b []byte, size, offset, width int) {
	var before uint64
	for i := offset; i+width <= len(b); i += size {
		v := littleEndian(b[i : i+width])
		putLittleEndian(b[i:i+width], v-before)
		before = v
	}
}

// sums is the inverse of differences.
func sums(b []byte, size, offset, width int) {
	var v uint64
	for i := offset; i+width <= len(b); i += size {
		v += littleEndian(b[i : i+width])
		putLittleEndian(b[i:i+width], v)
	}
}

func littleEndian(b []byte) (v uint64) {
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

func putLittleEndian(b []byte, v uint64) {
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
}

// The offsets and widths of the fields in marks, tags and intervals that count up.
var (
	markCounters     = [][2]int{{0, 4}, {8, 8}} // k and time of a mark
	tagCounters      = [][2]int{{0, 4}}         // k of a tag
	intervalCounters = [][2]int{{0, 4}, {4, 4}} // k of an interval's begin and end
)

// The offset and the width of the address in a tag.
const (
	tagAddress  = 8
	addressSize = 8
)

// lift removes the values of width bytes at an offset from records of size bytes, and returns them separately. A rest
// shorter than a record stays with the records.
func lift(records []byte, size, offset, width int) (rest, lifted []byte) {
	n := len(records) / size
	rest, lifted = make([]byte, 0, len(records)-n*width), make([]byte, 0, n*width)
	for ; n > 0; n-- {
		rest = append(append(rest, records[:offset]...), records[offset+width:size]...)
		lifted, records = append(lifted, records[offset:offset+width]...), records[size:]
	}
	return append(rest, records...), lifted
}

// lower is the inverse of lift.
func lower(rest, lifted []byte, size, offset, width int) []byte {
	out := make([]byte, 0, len(rest)+len(lifted))
	for len(lifted) >= width && len(rest) >= size-width {
		out = append(append(append(out, rest[:offset]...), lifted[:width]...), rest[offset:size-width]...)
		lifted, rest = lifted[width:], rest[size-width:]
	}
	return append(out, rest...)
}

// distances encodes values of width bytes. For each value, distances stores how many values ago the same value
// occurred, 0 = never. The result of distances has the number of values, the distances in planes, and the first
// occurrences in planes. The distances compress well: an allocator reuses few addresses, and similar steps have the
// same distances even if their blocks have other addresses.
func distances(b []byte, width int) []byte {
	n := len(b) / width
	far, fresh := make([]byte, 4*n), []byte(nil)
	last := map[uint64]int{}
	for i := range n {
		v := b[i*width : (i+1)*width]
		key := littleEndian(v)
		if before, ok := last[key]; ok {
			putLittleEndian(far[4*i:4*i+4], uint64(i-before))
		} else {
			fresh = append(fresh, v...)
		}
		last[key] = i
	}
	out := binary.LittleEndian.AppendUint64(nil, uint64(n))
	return append(append(out, planes(far, 4)...), planes(append(fresh, b[n*width:]...), width)...)
}

// undistances is the inverse of distances.
func undistances(b []byte, width int) ([]byte, error) {
	if len(b) < 8 || binary.LittleEndian.Uint64(b) > uint64(len(b)-8)/4 {
		return nil, errStreams
	}
	n := int(binary.LittleEndian.Uint64(b))
	far, fresh := rows(b[8:8+4*n], 4), rows(b[8+4*n:], width)
	out := make([]byte, 0, n*width+width)
	for i := range n {
		from := &fresh
		if d := int(littleEndian(far[4*i : 4*i+4])); d > i {
			return nil, errStreams
		} else if d > 0 {
			before := out[(i-d)*width:]
			from = &before
		}
		if len(*from) < width {
			return nil, errStreams
		}
		out, *from = append(out, (*from)[:width]...), (*from)[width:]
	}
	if len(fresh) >= width {
		return nil, errStreams
	}
	return append(out, fresh...), nil
}

// columns replaces the counters of records by differences, and returns the records in planes.
func columns(records []byte, size int, counters [][2]int) []byte {
	b := append([]byte(nil), records...)
	for _, c := range counters {
		differences(b, size, c[0], c[1])
	}
	return planes(b, size)
}

// records is the inverse of columns.
func records(b []byte, size int, counters [][2]int) []byte {
	out := rows(b, size)
	for _, c := range counters {
		sums(out, size, c[0], c[1])
	}
	return out
}
