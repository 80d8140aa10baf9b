package spool

// A sealed journal holds what repeats apart from what counts up: compressed so, it takes a third. Nothing here knows what the
// bytes mean beyond that, and [Pack] checks that they come back as they were.

// planes turns values of width bytes each into columns: all first bytes, then all second ones, … A rest shorter than a
// value stays behind them.
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

// rows undoes planes.
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

// differences replaces each little-endian value of width bytes that lies at offset in a record of size bytes by its
// difference to the one before, in place.
func differences(b []byte, size, offset, width int) {
	var before uint64
	for i := offset; i+width <= len(b); i += size {
		v := littleEndian(b[i : i+width])
		putLittleEndian(b[i:i+width], v-before)
		before = v
	}
}

// sums undoes differences.
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

// The fields of marks and of tags that count up: where they lie, and how wide they are.
var (
	markCounters = [][2]int{{0, 4}, {8, 8}} // k, time
	tagCounters  = [][2]int{{0, 4}}         // k
)

// columns turns records into planes of differences.
func columns(records []byte, size int, counters [][2]int) []byte {
	b := append([]byte(nil), records...)
	for _, c := range counters {
		differences(b, size, c[0], c[1])
	}
	return planes(b, size)
}

// records undoes columns.
func records(b []byte, size int, counters [][2]int) []byte {
	out := rows(b, size)
	for _, c := range counters {
		sums(out, size, c[0], c[1])
	}
	return out
}
