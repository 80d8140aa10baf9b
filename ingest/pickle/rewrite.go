package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Rewrite returns a pickle of protocol 2 or later with edit applied to each string. Everything else stays the same,
// including fetches from the memo. Rewrite refuses opcodes whose argument is a line of text, which older protocols use,
// and strings of Python 2, which have no encoding.
func Rewrite(p []byte, edit func(string) string) ([]byte, error) {
	out := make([]byte, 0, len(p))
	// length is the place in out of the length of the frame that is being copied, and end is the frame's end in p.
	length, end := -1, -1
	for at := 0; at < len(p); {
		if at == end {
			binary.LittleEndian.PutUint64(out[length:], uint64(len(out)-length-8))
			end = -1
		}
		op, begin := p[at], at
		at++
		size, width := argument(op)
		if size < 0 {
			return nil, fmt.Errorf("byte %d: the opcode 0x%02x is not rewritten", begin, op)
		}
		if width > len(p)-at {
			return nil, fmt.Errorf("byte %d: cut short", begin)
		}
		if width > 0 {
			var n uint64
			for i := range width {
				n |= uint64(p[at+i]) << (8 * i)
			}
			if n > uint64(len(p)-at-width) {
				return nil, fmt.Errorf("byte %d: cut short", begin)
			}
			size = width + int(n)
		}
		if size > len(p)-at {
			return nil, fmt.Errorf("byte %d: cut short", begin)
		}
		after := at + size
		if end >= 0 && after > end {
			return nil, fmt.Errorf("byte %d: beyond its frame", begin)
		}
		switch op {
		case opFrame:
			n := binary.LittleEndian.Uint64(p[at:])
			if end >= 0 || n == 0 || n > uint64(len(p)-after) {
				return nil, fmt.Errorf("byte %d: a frame that is empty, cut short or in another", begin)
			}
			length, end = len(out)+1, after+int(n)
		case opShortBinUnicode, opBinUnicode, opBinUnicode8:
			old := string(p[at+width : after])
			if text := edit(old); text != old {
				out, at = appendText(out, text), after
				continue
			}
		case opStop:
			out = append(out, op)
			if end >= 0 && end != after {
				return nil, fmt.Errorf("byte %d: the end is inside a frame", begin)
			}
			if end >= 0 {
				binary.LittleEndian.PutUint64(out[length:], uint64(len(out)-length-8))
			}
			return append(out, p[after:]...), nil
		}
		out = append(out, p[begin:after]...)
		at = after
	}
	return nil, errors.New("it has no end")
}

// appendText appends the opcode and bytes of a string, as Python's pickler writes them.
func appendText(out []byte, text string) []byte {
	switch n := len(text); {
	case n <= math.MaxUint8:
		out = append(out, opShortBinUnicode, byte(n))
	case n <= math.MaxUint32:
		out = binary.LittleEndian.AppendUint32(append(out, opBinUnicode), uint32(n))
	default:
		out = binary.LittleEndian.AppendUint64(append(out, opBinUnicode8), uint64(n))
	}
	return append(out, text...)
}

// argument returns how many bytes follow an opcode, or, in width, how many bytes the length of its argument has. A
// negative size means that pickles of plain data do not have the opcode in these protocols.
func argument(op byte) (size, width int) {
	switch op {
	case opMark, opStop, opPop, opPopMark, opDup, opNone, opAppend, opDict, opEmptyDict, opAppends, opList, opEmptyList,
		opSetItem, opTuple, opEmptyTuple,
		opSetItems, opTuple1, opTuple2, opTuple3, opNewTrue, opNewFalse, opMemoize:
		return 0, 0
	case opBinInt1, opBinGet, opBinPut, opProto:
		return 1, 0
	case opBinInt2:
		return 2, 0
	case opBinInt, opLongBinGet, opLongBinPut:
		return 4, 0
	case opBinFloat, opFrame:
		return 8, 0
	case opLong1, opShortBinUnicode, opShortBinBytes:
		return 0, 1
	case opLong4, opBinUnicode, opBinBytes:
		return 0, 4
	case opBinUnicode8, opBinBytes8, opByteArray8:
		return 0, 8
	}
	return -1, 0
}
