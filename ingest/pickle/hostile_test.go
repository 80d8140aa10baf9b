package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

func isUnexpectedEOF(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

func unwrapAll(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// TestRefusedOpcodes checks that the decoder refuses all opcodes in pickletools' list that do not stand for plain data.
func TestRefusedOpcodes(t *testing.T) {
	for op, name := range map[byte]string{
		'P': "PERSID", 'Q': "BINPERSID", 'R': "REDUCE", 'b': "BUILD", 'c': "GLOBAL", 'i': "INST", 'o': "OBJ",
		0x81: "NEWOBJ",
		0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x8f: "EMPTY_SET", 0x90: "ADDITEMS", 0x91: "FROZENSET",
		0x92: "NEWOBJ_EX",
		0x93: "STACK_GLOBAL", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
	} {
		_, err := decode(NewBytesDecoder(append([]byte{opProto, 4, opMark, opNone, opNone, op}, "os\nsystem\n."...),
			Limits{}))
		var r *RefusedError
		if !errors.As(err, &r) || r.Opcode != name || r.Offset != 5 {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := decode(NewBytesDecoder([]byte("cos\nsystem\n(S'true'\ntR."), Limits{}))
	if err == nil || err.Error() != "opcode GLOBAL at byte 0 would run code: refused" {
		t.Errorf("got %v", err)
	}
}

// TestEveryOpcodeByte decodes each of the 256 bytes as an opcode. The decoder must execute it, refuse it by name, or
// report that it is no opcode, and an empty stack must not cause a panic.
func TestEveryOpcodeByte(t *testing.T) {
	for op := range 256 {
		for _, before := range []string{"", "(", "N", "](", "}(", "]\x94(", "(NN", "]N", "}NN"} {
			p := append([]byte(before), byte(op))
			p = append(p, bytes.Repeat([]byte{'1', 0xff, '\n'}, 10)...)
			for n := len(before) + 1; n <= len(p); n++ {
				_, _ = decode(NewBytesDecoder(p[:n], Limits{}))
			}
		}
	}
}

func le64(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

func TestBrokenPickles(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"empty":               {"", "the input ends at byte 0"},
		"text":                {"#!/bin/sh", "this is no pickle"},
		"protocol 6":          {"\x80\x06N.", "protocol 6"},
		"stop on nothing":     {".", "STOP with 0 values"},
		"stop on two":         {"NN.", "STOP with 2 values"},
		"stop below a mark":   {"N(.", "1 marks"},
		"no mark":             {"]Ne.", "no mark"},
		"underflow":           {"\x86.", "underflow"},
		"underflow at mark":   {"N(N\x86.", "underflow"},
		"append to nothing":   {"Na.", "underflow"},
		"append to dict":      {"}Na.", "items for a list, but a dict"},
		"items for list":      {"]NNs.", "items for a dict, but a list"},
		"append to tuple":     {")Na.", "but a tuple"},
		"odd dict":            {"}(Nu.", "a key that has no value"},
		"odd DICT":            {"(Nd.", "a key that has no value"},
		"empty slot":          {"h\x05.", "memo slot 5 is empty"},
		"far slot":            {"Nr\xff\xff\xff\x7f.", "beyond all values"},
		"text slot":           {"Np-1\n.", `memo slot "-1"`},
		"huge text slot":      {"Np99999999999999999999999\n.", "memo slot"},
		"slot twice":          {"\x80\x04Nq\x00q\x00.", "written twice"},
		"two slots":           {"\x80\x04]q\x00q\x01.", "two memo slots"},
		"list in itself":      {"]\x94h\x00a.", "contains itself"},
		"deep cycle":          {"}\x94(K\x01](h\x00eu.", "contains itself"},
		"grows after sharing": {"]\x94h\x00K\x01a.", "grows after it was shared"},
		"dup of a list":       {"]2.", "DUP of a list"},
		"pop of nothing":      {"0.", "underflow"},
		"bad int":             {"Ixyz\n.", "no integer"},
		"bad float":           {"Fxyz\n.", "no float"},
		"bad string":          {"Sabc\n.", "without quotes"},
		"bad escape":          {"S'\\x0'\n.", "broken escape"},
		"bad unicode":         {"V\\u00\n.", "broken escape"},
		"frame of 2^63":       {"\x80\x04\x95" + le64(1<<63) + "N.", "frame of 9223372036854775808 bytes"},
	} {
		_, err := decode(NewBytesDecoder([]byte(c.in), Limits{}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want …%s…", name, err, c.want)
		}
	}
}

// TestBombs checks that the decoder refuses small inputs that would need much memory, before it allocates the memory.
func TestBombs(t *testing.T) {
	for name, c := range map[string]struct {
		in     string
		limits Limits
		want   string
	}{
		"deep list":  {strings.Repeat("]", 1000) + strings.Repeat("a", 999) + ".", Limits{}, "nesting"},
		"deep tuple": {")" + strings.Repeat("\x85", 1000) + ".", Limits{}, "nesting"},
		"deep LIST":  {strings.Repeat("(", 300) + strings.Repeat("l", 300) + ".", Limits{}, "nesting"},
		"deep by memo": {")\x94" + "h\x00\x85\x94h\x01\x85\x94h\x02\x85\x94h\x03\x85.", Limits{Depth: 4},
			"nesting"},
		"string of 2^63":   {"\x8d" + le64(1<<63) + "x", Limits{}, "string length"},
		"string of 2^64-1": {"\x8d" + le64(1<<64-1) + "x", Limits{}, "string length"},
		"bytes of 2^40":    {"\x8e" + le64(1<<40) + "x", Limits{}, "string length"},
		"bytearray":        {"\x96" + le64(1<<62) + "x", Limits{}, "string length"},
		"binunicode":       {"X\xff\xff\xff\xff", Limits{}, "string length"},
		"LONG4 of 2^31":    {"\x8b\x00\x00\x00\x80", Limits{}, "bytes of an integer"},
		"long digits":      {"L" + strings.Repeat("9", 5000) + "L\n.", Limits{}, "digits"},
		"endless line":     {"V" + strings.Repeat("a", 1000), Limits{StringBytes: 100}, "line length"},
		"stack":            {strings.Repeat("N", 1<<16), Limits{Memory: 1 << 16}, "memory"},
		"marks":            {strings.Repeat("(", 1<<16), Limits{Memory: 1 << 16}, "memory"},
		"memo": {strings.Repeat("\x94", 0) + strings.Repeat("N\x940", 1<<14), Limits{Memory: 1 << 16},
			"memory"},
		"strings":  {manyStrings(5000), Limits{Memory: 1 << 16}, "memory"},
		"elements": {"](" + strings.Repeat("N", 200) + "e.", Limits{Elements: 100}, "elements"},
		"input":    {strings.Repeat("N0", windowBytes), Limits{Input: 1000}, "input"},
	} {
		for _, d := range []*Decoder{NewBytesDecoder([]byte(c.in), c.limits), NewDecoder(strings.NewReader(c.in),
			c.limits)} {
			if name == "input" && d.in.r == nil {
				continue // the input is in memory already, so its length is no problem
			}
			_, err := decode(d)
			var l *LimitError
			if !errors.As(err, &l) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want a limit of %s", name, err, c.want)
			}
		}
	}
}

func manyStrings(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("\x8c\x04")
		_ = binary.Write(&b, binary.LittleEndian, uint32(i)&0x7f7f7f7f)
		b.WriteByte('0')
	}
	return b.String()
}

// TestPromisedLengthIsNotBelieved decodes an input that claims a string of 16 MiB and has only a few bytes.
func TestPromisedLengthIsNotBelieved(t *testing.T) {
	in := "\x80\x04X\x00\x00\x00\x01" + "abc"
	if n := allocated(func() {
		if _, err := decode(NewDecoder(strings.NewReader(in), Limits{})); !isUnexpectedEOF(err) {
			t.Errorf("got %v", err)
		}
	}); n > 4*windowBytes {
		t.Errorf("%d bytes allocated", n)
	}
}

// TestSharingCostsNothing reads 60 levels of lists, each holding the level below twice: 2^60 elements.
func TestSharingCostsNothing(t *testing.T) {
	p := []byte("]\x94")
	for i := range 60 {
		p = append(p, '0', ']', 0x94, '(', 'h', byte(i), 'h', byte(i), 'e')
	}
	p = append(p, '.')
	if _, err := decode(NewBytesDecoder(p, Limits{Depth: 100})); err != nil {
		t.Fatal(err)
	}
}

// TestLinear checks that the decoder does not need much more than four times the memory for four times the input.
func TestLinear(t *testing.T) {
	for name, unit := range map[string]string{"append one by one": "Na", "batches": "(NNe", "pushes": "N0"} {
		cost := func(n int) uint64 {
			p := []byte("]\x94" + strings.Repeat(unit, n) + ".")
			return allocated(func() {
				if _, err := decode(NewBytesDecoder(p, Limits{})); err != nil {
					t.Fatal(err)
				}
			})
		}
		if a, b := cost(20_000), cost(80_000); b > 8*a+1<<20 {
			t.Errorf("%s: %d bytes for n, %d for 4n", name, a, b)
		}
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzDecode(f *testing.F) {
	for _, s := range samples(f) {
		if len(s.Pickle) < 4000 {
			f.Add(s.bytes())
		}
	}
	f.Add([]byte("cos\nsystem\n(S'true'\ntR."))
	f.Add([]byte("\x80\x04]\x94h\x00a."))
	f.Add([]byte("(I1\nL2L\nF3\nS'x'\nVy\nlp0\ng0\n(NNd0."))
	f.Fuzz(func(t *testing.T, p []byte) {
		limits := Limits{Memory: 1 << 20, StringBytes: 1 << 16, Elements: 1 << 16}
		a := NewBytesDecoder(p, limits)
		_, errA := decode(a)
		b := NewDecoder(bytes.NewReader(p), limits)
		_, errB := decode(b)
		if (errA == nil) != (errB == nil) {
			t.Errorf("from bytes: %v; from a reader: %v", errA, errB)
		}
		if errA != nil && strings.Contains(errA.Error(), "zero Ref") {
			t.Error(errA)
		}
		limits.Memory = 0 // interning strings takes some memory
		want, errWant := NewBytesDecoder(p, limits).Decode(plainBuilder{&contents{}})
		got, err := NewBytesDecoder(p, limits).Decode(&contents{intern: true})
		if fmt.Sprint(err) != fmt.Sprint(errWant) || got.kind != want.kind || got.depth != want.depth || got.n != want.n {
			t.Errorf("with lists that are interned: %+v, %v; else %+v, %v", got, err, want, errWant)
		}
	})
}
