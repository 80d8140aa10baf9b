package pickle

import (
	"encoding/binary"
	"io"
	"math"
)

// A Builder receives the containers of a pickle and keeps the data that it needs. The elements are valid only during
// the call. If a method returns an error, the decoding ends, and [Decoder.Decode] returns the error with the byte
// offset.
type Builder interface {
	// List adds items to a list. list is the Ref that an earlier call returned for this list, or the zero Ref for a new
	// list. The decoder calls List once for each batch of items. Some writers put all items of a list into one batch,
	// Python puts up to 1,000 items into each, and protocol 0 has one item in each. List returns a Ref with a tag other
	// than 0, which stands for the list from then on.
	List(list Ref, items []Value) (Ref, error)
	// Dict adds items to a dictionary in the same way: key, value, key, value, …. A repeated key replaces the
	// earlier value.
	Dict(dict Ref, items []Value) (Ref, error)
	// Tuple makes a tuple of one item or more; an empty tuple is the zero Ref.
	Tuple(items []Value) (Ref, error)
}

// An Interner is a [Builder] that gives some lists with equal items the same Ref, and returns a new Ref when such a
// list grows.
type Interner interface {
	Builder
	// Interned reports whether the list that List has just made shares its Ref with all lists of equal items. If the
	// list shares its Ref, the decoder does not call List for further lists that fetch the same items from the memo.
	Interned(list Ref) bool
}

// A Decoder reads one pickle.
type Decoder struct {
	in       window
	at       int64 // offset of the current opcode
	b        Builder
	limits   Limits
	used     int64 // bytes that the limit has counted so far
	elements int64
	protocol int
	size     int64 // bytes of the input; 0 = unknown

	stack []Value
	marks []uint32 // heights of the stack at marks
	memo  []Value  // values in the memo; kind 0 = never written
	ids   map[string]uint32
	texts []string

	interner     Interner               // nil = the builder is no Interner
	lists        map[string]fetchedList // lists fetched before, by the opcodes that fetch their items
	listsBytes   int                    // bytes that lists takes
	listsCharged int
}

// NewDecoder reads from r. The Decoder may read beyond the end of the pickle.
func NewDecoder(r io.Reader, l Limits) *Decoder { return newDecoder(window{r: r}, l) }

// NewBytesDecoder reads from p in place.
func NewBytesDecoder(p []byte, l Limits) *Decoder { return newDecoder(window{buf: p}, l) }

func newDecoder(in window, l Limits) *Decoder {
	l = l.withDefaults()
	in.max = l.Input
	return &Decoder{in: in, limits: l, ids: map[string]uint32{}, texts: []string{""}}
}

// Protocol returns the protocol that the pickle names. Protocol returns 0 if the pickle names none, as in protocols 0
// and 1.
func (d *Decoder) Protocol() int { return d.protocol }

// Offset returns the offset of the current opcode, in bytes.
func (d *Decoder) Offset() int64 { return d.at }

// Expect tells the decoder how many bytes the input has; 0 = unknown. The decoder uses the size only for
// [Decoder.Ahead], so a wrong size does no harm.
func (d *Decoder) Expect(size int64) { d.size = size }

// Ahead estimates for how many items a builder should make room, if n items came since an offset. Ahead extrapolates to
// the rest of the input, and adds a little, but returns at most four times n. If too little is known, Ahead returns n.
func (d *Decoder) Ahead(n int, since int64) int {
	read, left := d.at-since, d.size-d.at
	if read < 1<<20 || left <= 0 {
		return n
	}
	return min(4*n, int(float64(n)/float64(read)*float64(left)*1.01)+n/64)
}

// Charge counts n bytes against [Limits].Memory. Builders call it for what they keep.
func (d *Decoder) Charge(n int64) error {
	if d.used += n; d.used > d.limits.Memory {
		return d.exceeded("memory", d.limits.Memory)
	}
	return nil
}

// Decode runs the pickle up to its STOP opcode and returns its value. Decode does not execute opcodes after the STOP.
func (d *Decoder) Decode(b Builder) (Value, error) {
	d.b = b
	d.interner, _ = b.(Interner)
	for {
		d.run()
		d.at = d.in.offset()
		if d.in.pos == len(d.in.buf) {
			if err := d.in.fill(1); err != nil {
				return Value{}, d.readError(err)
			}
		}
		op := d.in.buf[d.in.pos]
		if op == opMark {
			if done, err := d.fetch(); err != nil {
				return Value{}, err
			} else if done {
				continue
			}
		}
		d.in.pos++
		if op == opStop {
			return d.result()
		}
		if err := d.step(op); err != nil {
			return Value{}, err
		}
	}
}

func (d *Decoder) result() (Value, error) {
	if len(d.stack) != 1 || len(d.marks) != 0 {
		return Value{}, d.bad("STOP with %d values and %d marks on the stack, want one value", len(d.stack),
			len(d.marks))
	}
	return d.stack[0], nil
}

// step executes one opcode.
func (d *Decoder) step(op byte) error {
	switch op {
	case opBinGet:
		n, err := d.uint(1)
		if err != nil {
			return err
		}
		return d.get(n)
	case opLongBinGet:
		n, err := d.uint(4)
		if err != nil {
			return err
		}
		return d.get(n)
	case opMemoize:
		return d.put(uint64(len(d.memo)))
	case opMark:
		if len(d.marks) == cap(d.marks) {
			if err := d.growMarks(); err != nil {
				return err
			}
		}
		d.marks = append(d.marks, uint32(len(d.stack)))
		return nil
	case opBinInt:
		n, err := d.uint(4)
		if err != nil {
			return err
		}
		return d.push(intValue(int64(int32(uint32(n)))))
	case opBinInt1:
		n, err := d.uint(1)
		if err != nil {
			return err
		}
		return d.push(intValue(int64(n)))
	case opBinInt2:
		n, err := d.uint(2)
		if err != nil {
			return err
		}
		return d.push(intValue(int64(n)))
	case opEmptyDict:
		return d.push(Value{kind: Dict, depth: 1})
	case opEmptyList:
		return d.push(Value{kind: List, depth: 1})
	case opEmptyTuple:
		return d.push(Value{kind: Tuple, depth: 1})
	case opNone:
		return d.push(Value{kind: None})
	case opNewTrue:
		return d.push(boolValue(true))
	case opNewFalse:
		return d.push(boolValue(false))
	case opSetItems, opSetItem, opAppends, opAppend, opDict, opList, opTuple, opTuple1, opTuple2, opTuple3:
		return d.build(op)
	case opPop, opPopMark, opDup, opPut, opBinPut, opLongBinPut, opGet, opProto, opFrame:
		return d.control(op)
	}
	return d.scalar(op)
}

// scalar executes the opcodes that make numbers, strings and other values without elements.
func (d *Decoder) scalar(op byte) error {
	var v Value
	switch op {
	case opLong1, opLong4:
		width := 1
		if op == opLong4 {
			width = 4
		}
		n, err := d.uint(width)
		if err != nil {
			return err
		}
		if n > maxIntBytes {
			return d.exceeded("bytes of an integer", maxIntBytes)
		}
		b, err := d.take(n)
		if err != nil {
			return err
		}
		if v, err = d.long(b); err != nil {
			return err
		}
	case opShortBinUnicode, opShortBinString, opShortBinBytes:
		return d.text(op, 1)
	case opBinUnicode, opBinString, opBinBytes:
		return d.text(op, 4)
	case opBinUnicode8, opBinBytes8, opByteArray8:
		return d.text(op, 8)
	case opBinFloat:
		b, err := d.take(8)
		if err != nil {
			return err
		}
		v = floatValue(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case opInt, opLong, opFloat, opString, opUnicode:
		line, err := d.line()
		if err != nil {
			return err
		}
		switch op {
		case opFloat:
			v, err = d.decimalFloat(line)
		case opString:
			v, err = d.quoted(line)
		case opUnicode:
			v, err = d.rawUnicode(line)
		default:
			v, err = d.decimal(line, op)
		}
		if err != nil {
			return err
		}
	default:
		if r, ok := refused[op]; ok {
			return &RefusedError{Opcode: r.name, Offset: d.at, Reason: r.reason}
		}
		if d.at == 0 {
			return d.bad("0x%02x is no pickle opcode: this is no pickle", op)
		}
		return d.bad("0x%02x is no pickle opcode", op)
	}
	return d.push(v)
}

// text executes the binary string opcodes, whose length is width bytes long.
func (d *Decoder) text(op byte, width int) error {
	n, err := d.uint(width)
	if err != nil {
		return err
	}
	b, err := d.take(n)
	if err != nil {
		return err
	}
	var v Value
	switch op {
	case opShortBinBytes, opBinBytes, opBinBytes8, opByteArray8:
		v, err = d.bytesValue(b)
	default:
		v, err = d.str(b)
	}
	if err != nil {
		return err
	}
	return d.push(v)
}

// control executes the opcodes that change the machine's state and make no value.
func (d *Decoder) control(op byte) error {
	switch op {
	case opProto:
		n, err := d.uint(1)
		if err != nil {
			return err
		}
		if n > 5 {
			return d.bad("protocol %d is not known (0 to 5 are)", n)
		}
		d.protocol = int(n)
	case opFrame:
		n, err := d.uint(8)
		if err != nil {
			return err
		}
		if n > math.MaxInt64 {
			return d.bad("frame of %d bytes", n)
		}
	case opPut, opGet:
		line, err := d.line()
		if err != nil {
			return err
		}
		n, err := d.decimal(line, opLong)
		if err != nil {
			return err
		}
		if n.kind != Int || n.Int() < 0 {
			return d.bad("memo slot %q", shortened(string(line)))
		}
		if op == opGet {
			return d.get(n.Uint())
		}
		return d.put(n.Uint())
	case opBinPut, opLongBinPut:
		width := 1
		if op == opLongBinPut {
			width = 4
		}
		n, err := d.uint(width)
		if err != nil {
			return err
		}
		return d.put(n)
	case opPopMark:
		_, err := d.popMark()
		return err
	case opPop:
		if m := len(d.marks); m > 0 && int(d.marks[m-1]) == len(d.stack) {
			d.marks = d.marks[:m-1]
			return nil
		}
		if err := d.need(1); err != nil {
			return err
		}
		d.stack = d.stack[:len(d.stack)-1]
	case opDup:
		if err := d.need(1); err != nil {
			return err
		}
		v := d.stack[len(d.stack)-1]
		if v.kind == List || v.kind == Dict {
			return d.bad("DUP of a %v, which no pickler writes", v.kind)
		}
		return d.push(v)
	}
	return nil
}
