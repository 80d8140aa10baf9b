package spool

import (
	"encoding/binary"
	"strconv"
)

// The texts of allocator events are nearly identical: only one number, the mark, counts up. Written as digits, this
// number does not repeat, but its difference from the number before repeats from step to step.

const (
	// place is the byte that stands in a text in place of a number that was taken out.
	place = 0
	// most is how many digits a number that is taken out may have, so that it fits in four bytes.
	most = 9
	// untouched stands before texts from which no number is taken out, since these texts already contain [place].
	untouched = 1<<64 - 1
)

// counted takes the numbers out of texts. counted returns three things in one slice: the length of the remaining text,
// that text, and the numbers' differences in planes.
func counted(text []byte) []byte {
	rest, numbers := make([]byte, 0, len(text)), []byte(nil)
	for i := 0; i < len(text); {
		if text[i] == place {
			return append(binary.LittleEndian.AppendUint64(nil, untouched), text...)
		}
		end := i
		for end < len(text) && '0' <= text[end] && text[end] <= '9' {
			end++
		}
		switch n := end - i; {
		case n == 0:
			rest = append(rest, text[i])
			i++
		case n > most || n > 1 && text[i] == '0': // these digits would also come from another number, or from none
			rest = append(rest, text[i:end]...)
			i = end
		default:
			number := uint32(0)
			for ; i < end; i++ {
				number = 10*number + uint32(text[i]-'0')
			}
			rest = append(rest, place)
			numbers = binary.LittleEndian.AppendUint32(numbers, number)
		}
	}
	differences(numbers, 4, 0, 4)
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(rest))), rest...), planes(numbers, 4)...)
}

// uncounted is the inverse of counted.
func uncounted(b []byte) ([]byte, error) {
	if len(b) < 8 {
		return nil, errStreams
	}
	n, b := binary.LittleEndian.Uint64(b), b[8:]
	if n == untouched {
		return b, nil
	}
	if n > uint64(len(b)) {
		return nil, errStreams
	}
	rest, numbers := b[:n], rows(b[n:], 4)
	sums(numbers, 4, 0, 4)
	out := make([]byte, 0, len(rest)+len(numbers))
	for _, c := range rest {
		if c != place {
			out = append(out, c)
			continue
		}
		if len(numbers) < 4 {
			return nil, errStreams
		}
		out = strconv.AppendUint(out, littleEndian(numbers[:4]), 10)
		numbers = numbers[4:]
	}
	if len(numbers) > 0 {
		return nil, errStreams
	}
	return out, nil
}
