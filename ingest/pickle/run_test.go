package pickle

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// contents is a builder that replaces each container by a number that depends only on the container's items. Two lists
// with the same items have the same number, so lists may be interned.
type contents struct {
	intern bool
	lists  int // how often List was called
}

func (c *contents) of(kind Kind, r Ref, items []Value) (Ref, error) {
	h := r.ID*31 + uint64(kind)
	for _, v := range items {
		h = (h^uint64(v.kind)<<32^uint64(v.tag)<<40^v.n)*0x9E3779B97F4A7C15 + 1
		h ^= h >> 29
	}
	return Ref{Tag: uint8(kind), ID: h}, nil
}

func (c *contents) List(r Ref, items []Value) (Ref, error) {
	c.lists++
	return c.of(List, r, items)
}

func (c *contents) Dict(r Ref, items []Value) (Ref, error) { return c.of(Dict, r, items) }
func (c *contents) Tuple(items []Value) (Ref, error)       { return c.of(Tuple, Ref{}, items) }
func (c *contents) Interned(Ref) bool                      { return c.intern }

// plainBuilder hides the method Interned of a builder, so the decoder builds every list.
type plainBuilder struct{ Builder }

// stacks returns a pickle of n lists of the strings 0 to 9. The lists fetch the strings from the memo. List i equals
// list i modulo kinds.
func stacks(n, kinds int) []byte {
	p := []byte("\x80\x04](")
	for i := range 10 {
		p = fmt.Appendf(p, "\x8c\x01%d\x94", i)
	}
	p = append(p, '1', '(') // POP_MARK leaves the strings only in the memo
	for i := range n {
		p = append(p, ']', 0x94, '(')
		for k := range 40 {
			if slot := byte((i%kinds + k*k) % 10); k%3 == 0 {
				p = append(p, 'j', slot, 0, 0, 0)
			} else {
				p = append(p, 'h', slot)
			}
		}
		p = append(p, 'e')
	}
	return append(p, "e."...)
}

// The decoder has a shortcut for lists that fetch the same items from the memo as an earlier list. The lists have the
// same content with and without the shortcut, and with it the decoder calls the builder only for new lists.
func TestFetchedLists(t *testing.T) {
	p := stacks(5000, 7)
	plain, interning := &contents{}, &contents{intern: true}
	want, err := NewBytesDecoder(p, Limits{}).Decode(plainBuilder{plain})
	if err != nil {
		t.Fatal(err)
	}
	if plain.lists != 5001 {
		t.Fatalf("%d lists", plain.lists)
	}
	for name, r := range map[string]io.Reader{"reader": bytes.NewReader(p),
		"halves":   iotest.HalfReader(bytes.NewReader(p)),
		"one byte": iotest.OneByteReader(bytes.NewReader(p))} {
		interning.lists = 0
		got, err := NewDecoder(r, Limits{}).Decode(interning)
		if err != nil || got.Ref() != want.Ref() || got.depth != want.depth {
			t.Errorf("%s: %+v, want %+v, %v", name, got, want, err)
		}
		// The decoder also builds a list that extends over two windows.
		if windows := len(p)/windowBytes + 1; interning.lists > 1+7+windows && name == "reader" {
			t.Errorf("%s: %d lists were built", name, interning.lists)
		}
	}
	if _, err := NewBytesDecoder(p, Limits{Elements: 100_000}).Decode(interning); err == nil ||
		!strings.Contains(err.Error(), "elements") {
		t.Errorf("lists that are not built count no elements: %v", err)
	}
}

// The decoder remembers lists in a bounded amount of memory, and counts this memory against its limit.
func TestFetchedListsAreForgotten(t *testing.T) {
	var p []byte
	p = append(p, "\x80\x04]("...)
	for i := range 256 {
		p = append(p, 0x8c, 1, byte(i)&0x7f, 0x94)
	}
	p = append(p, '1', '(')
	const n, fetches = 30_000, 1200
	for i := range n {
		p = append(p, ']', 0x94, '(', 'h', byte(i), 'h', byte(i>>8))
		p = append(p, bytes.Repeat([]byte{'h', 0}, fetches/2-2)...)
		p = append(p, 'e')
	}
	p = append(p, "e."...)
	d := NewBytesDecoder(p, Limits{})
	c := &contents{intern: true}
	if _, err := d.Decode(c); err != nil {
		t.Fatal(err)
	}
	if d.listsBytes > maxFetchedBytes || len(d.lists) > maxFetchedBytes/fetches || len(d.lists) == 0 {
		t.Errorf("%d lists of %d bytes are remembered", len(d.lists), d.listsBytes)
	}
	if d.used < maxFetchedBytes/2 {
		t.Errorf("%d bytes are charged", d.used)
	}
	if _, err := NewBytesDecoder(p, Limits{Memory: 8 << 20}).Decode(c); err == nil ||
		!strings.Contains(err.Error(), "memory") {
		t.Errorf("beyond a limit of memory: %v", err)
	}
}

// If a list is still empty, the next batch of items fills it, whatever surrounds the list.
func TestFetchesIntoEmptyLists(t *testing.T) {
	const strings2 = "\x80\x04(\x8c\x01a\x94\x8c\x01b\x941"
	for _, body := range []string{
		"]\x94(h\x00h\x01e](h\x00h\x01e\x86.",                        // two equal lists, and the memo has the first
		"](h\x00h\x01e(h\x00h\x01e.",                                 // a list that appends the same items twice
		"](h\x00e(h\x01e](h\x00e\x86.",                               // a list that has grown does not equal the earlier list
		"](h\x00h\x01e](h\x00h\x01eh\x00a\x86.",                      // a list that grows by APPEND
		"](h\x00h\x01](h\x00h\x01ee.",                                // a list inside an unfinished list
		"]\x94(h\x02h\x00e.",                                         // a list that contains itself
		"]\x940h\x02(h\x00e.",                                        // a list that grows after it was shared
		"](h\x00h\x01l\x86.", "](h\x00h\x01t\x86.", "](h\x00h\x07e.", // no APPENDS, and no such memo slot
		"N](h\x00e(](h\x00ee\x86.", "](](h\x00h\x01e](h\x00h\x01ee.",
		"(](h\x00h\x01eh\x00(h\x01e.", "]((h\x00e.", // no list on top of the stack, and none above the mark
	} {
		p := []byte(strings2 + body)
		want, errWant := NewBytesDecoder(p, Limits{}).Decode(plainBuilder{&contents{}})
		// with more bytes after its end, a list also goes through Decoder.run
		for _, more := range []string{"", strings.Repeat("N", runBytes)} {
			got, err := NewBytesDecoder(append(p, more...), Limits{}).Decode(&contents{intern: true})
			if got.Ref() != want.Ref() || got.kind != want.kind || got.depth != want.depth ||
				fmt.Sprint(err) != fmt.Sprint(errWant) {
				t.Errorf("%q: %+v, %v; want %+v, %v", body, got, err, want, errWant)
			}
		}
	}
}
