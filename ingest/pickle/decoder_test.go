package pickle

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"testing"
	"testing/iotest"
)

type sample struct {
	Name     string
	Protocol int
	Pickle   string
	Value    any
}

func samples(t testing.TB) []sample {
	t.Helper()
	file, err := os.Open("testdata/values.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	raw, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var values []struct {
		Name    string
		Value   any
		Pickles map[string]string
	}
	if err := json.NewDecoder(raw).Decode(&values); err != nil {
		t.Fatal(err)
	}
	var out []sample
	for _, v := range values {
		v.Value = floats(v.Value)
		for protocol, pickle := range v.Pickles {
			n, _ := strconv.Atoi(protocol)
			out = append(out, sample{v.Name, n, pickle, v.Value})
		}
	}
	if len(out) < 50 {
		t.Fatalf("%d samples", len(out))
	}
	return out
}

func (s sample) bytes() []byte {
	b, err := hex.DecodeString(s.Pickle)
	if err != nil {
		panic(err)
	}
	return b
}

func decode(d *Decoder) (any, error) {
	t := &tree{d: d}
	v, err := d.Decode(t)
	if err != nil {
		return nil, err
	}
	return t.value(v), nil
}

// floats turns the hexadecimal floats that make.py writes into numbers.
func floats(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case map[string]any:
		if s, ok := v["float"].(string); ok {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil {
				panic(err)
			}
			return f
		}
		for k := range v {
			v[k] = floats(v[k])
		}
	}
	return v
}

func TestValuesOfPython(t *testing.T) {
	for _, s := range samples(t) {
		t.Run(fmt.Sprintf("%s/%d", s.Name, s.Protocol), func(t *testing.T) {
			want := s.Value
			readers := map[string]*Decoder{
				"bytes":    NewBytesDecoder(s.bytes(), Limits{}),
				"reader":   NewDecoder(bytes.NewReader(s.bytes()), Limits{}),
				"one byte": NewDecoder(iotest.OneByteReader(bytes.NewReader(s.bytes())), Limits{}),
				"late EOF": NewDecoder(iotest.DataErrReader(bytes.NewReader(s.bytes())), Limits{}),
			}
			for name, d := range readers {
				got, err := decode(d)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if p := plain(got); !reflect.DeepEqual(p, want) {
					t.Errorf("%s:\n got %v\nwant %v", name, p, want)
				}
				if s.Protocol >= 2 && d.Protocol() != s.Protocol {
					t.Errorf("%s: protocol %d", name, d.Protocol())
				}
			}
		})
	}
}

func TestSharedPartsStayShared(t *testing.T) {
	for _, s := range samples(t) {
		if s.Name != "shared lists" {
			continue
		}
		v, err := decode(NewBytesDecoder(s.bytes(), Limits{}))
		if err != nil {
			t.Fatal(err)
		}
		top := v.(*node).items
		a, c := top[1].(*node), top[5].(*node)
		if a != top[3] || a != c.items[0] || a != c.items[1] || len(a.items) != 2 {
			t.Errorf("protocol %d: shared list came out as several", s.Protocol)
		}
	}
}

// TestTruncated checks that a sample that is cut short gives an error. TestTruncated cuts each sample after each of its
// first 700 bytes, and after every 97th of the other bytes.
func TestTruncated(t *testing.T) {
	for _, s := range samples(t) {
		all := s.bytes()
		for n := 0; n < len(all); n++ {
			if n > 700 && n%97 != 0 {
				continue
			}
			decoders := []*Decoder{NewBytesDecoder(all[:n], Limits{})}
			if n%19 == 0 { // few cuts, since each decoder has a buffer of its own
				decoders = append(decoders, NewDecoder(bytes.NewReader(all[:n]), Limits{}))
			}
			for _, d := range decoders {
				_, err := decode(d)
				if err == nil {
					t.Fatalf("%s/%d: no error after %d of %d bytes", s.Name, s.Protocol, n, len(all))
				}
				if !isUnexpectedEOF(err) {
					t.Fatalf("%s/%d after %d of %d bytes: %v", s.Name, s.Protocol, n, len(all), err)
				}
			}
		}
	}
}

// TestLongStrings decodes strings that extend over the end of the decoder's window.
func TestLongStrings(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789abcdef"), 3*windowBytes/16)
	p := []byte{opProto, 4, opBinBytes, byte(len(long)), byte(len(long) >> 8), byte(len(long) >> 16),
		byte(len(long) >> 24)}
	p = append(append(p, long...), opStop)
	d := NewDecoder(iotest.HalfReader(bytes.NewReader(p)), Limits{})
	v, err := d.Decode(&tree{d: d})
	if err != nil {
		t.Fatal(err)
	}
	if d.Text(v.ID()) != string(long) {
		t.Error("bytes differ")
	}
}

func TestReadErrorIsKept(t *testing.T) {
	boom := fmt.Errorf("disk on fire")
	d := NewDecoder(io.MultiReader(bytes.NewReader([]byte{opProto, 4, opMark}), iotest.ErrReader(boom)), Limits{})
	if _, err := decode(d); err == nil || !reflect.DeepEqual(unwrapAll(err), boom) {
		t.Errorf("got %v", err)
	}
}
