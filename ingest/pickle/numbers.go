package pickle

import (
	"encoding/binary"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// long returns the value of a little-endian two's-complement integer of any width.
func (d *Decoder) long(b []byte) (Value, error) {
	if len(b) == 0 {
		return intValue(0), nil
	}
	negative := b[len(b)-1]&0x80 != 0
	if len(b) <= 8 {
		var w [8]byte
		if negative {
			w = [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		}
		copy(w[:], b)
		return intValue(int64(binary.LittleEndian.Uint64(w[:]))), nil
	}
	if len(b) == 9 && b[8] == 0 {
		return uintValue(binary.LittleEndian.Uint64(b)), nil
	}
	be := slices.Clone(b)
	slices.Reverse(be)
	n := new(big.Int).SetBytes(be)
	if negative {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return d.bigValue(n)
}

func (d *Decoder) bigValue(n *big.Int) (Value, error) {
	switch {
	case n.IsInt64():
		return intValue(n.Int64()), nil
	case n.IsUint64():
		return uintValue(n.Uint64()), nil
	}
	id, err := d.intern([]byte(n.String()))
	return Value{kind: BigInt, n: uint64(id)}, err
}

// decimal parses the argument of protocol 0's INT and LONG. INT 00 and INT 01 are booleans.
func (d *Decoder) decimal(line []byte, op byte) (Value, error) {
	s := strings.TrimSpace(string(line))
	if op == opInt && s == "00" || op == opInt && s == "01" {
		return boolValue(s == "01"), nil
	}
	if op == opLong {
		s = strings.TrimSuffix(s, "L")
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return intValue(n), nil
	}
	if len(s) > 2*maxIntBytes {
		return Value{}, d.exceeded("digits of an integer", 2*maxIntBytes)
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return Value{}, d.bad("%q is no integer", shortened(s))
	}
	return d.bigValue(n)
}

func (d *Decoder) decimalFloat(line []byte) (Value, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(string(line)), 64)
	if err != nil && !isRange(err) {
		return Value{}, d.bad("%q is no float", shortened(string(line)))
	}
	return floatValue(f), nil
}

// isRange reports whether a float is too large, so that it becomes infinite, as in Python.
func isRange(err error) bool {
	ne, ok := err.(*strconv.NumError)
	return ok && ne.Err == strconv.ErrRange
}

func shortened(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
