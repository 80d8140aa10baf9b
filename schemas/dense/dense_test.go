package dense

import (
	"reflect"
	"testing"
	"time"
)

type part struct {
	Name  string
	Bytes *int64
	Held  float64
}

type inner struct{ N int32 }

type whole struct {
	Inner  inner  `json:"-"`
	Parts  []part `json:"parts"`
	None   []part
	Empty  []string
	Params map[string]any
	Words  map[string]string
	Nested *part
	At     time.Time
	Any    any
	Set    bool
	Count  int
	Err    error
}

func example() *whole {
	bytes := int64(-5)
	return &whole{Parts: []part{{"a", &bytes, 0.1}, {"b", nil, -1e300}}, Empty: []string{},
		Params: map[string]any{"x": 1.0, "y": "word", "z": nil, "l": []any{true, false, map[string]any{"k": "v"}}},
		Words:  map[string]string{"one": "1", "two": "2"}, Nested: &part{Name: "n"},
		At: time.Date(2026, 10, 1, 2, 3, 4, 5, time.UTC), Any: "any", Set: true, Count: -1 << 40}
}

// Decoding returns the value that was encoded, and distinguishes a nil slice from an empty one.
func TestDecodesWhatWasEncoded(t *testing.T) {
	b, err := Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	var r Readers
	for range 2 {
		got := new(whole)
		if err := r.Unmarshal(b, got); err != nil || !reflect.DeepEqual(got, example()) {
			t.Fatalf("%+v (%v), not %+v", got, err, example())
		}
	}
}

// If a struct or a list occurs again in another encoding, the reader decodes it once and shares it.
func TestSharesWhatComesAgain(t *testing.T) {
	var r Reader
	var got [2]whole
	for i := range got {
		of := example()
		of.Count = i
		b, err := Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Unmarshal(b, &got[i]); err != nil || !reflect.DeepEqual(&got[i], of) {
			t.Fatalf("%+v (%v), not %+v", got[i], err, of)
		}
	}
	if got[0].Nested != got[1].Nested || &got[0].Parts[0] != &got[1].Parts[0] {
		t.Error("a struct or a list is decoded twice")
	}
}

// If an encoding is cut off, too long, or of another type, decoding returns an error.
func TestRefusesWhatIsNotOfItsType(t *testing.T) {
	b, err := Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	var r Reader
	for n := range b {
		if r.Unmarshal(b[:n], new(whole)) == nil {
			t.Fatalf("the first %d of %d bytes are decoded", n, len(b))
		}
	}
	if r.Unmarshal(append(b, 0), new(whole)) == nil {
		t.Error("a byte too many is passed over")
	}
	if r.Unmarshal(b, new(part)) == nil {
		t.Error("it is decoded as another type")
	}
	if _, err := Marshal(&whole{Any: 1}); err == nil {
		t.Error("a whole number, which JSON would not give back as one, is encoded")
	}
}

// Decoding damaged bytes does not panic.
func FuzzUnmarshal(f *testing.F) {
	b, err := Marshal(example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(_ *testing.T, b []byte) {
		var r Reader
		_ = r.Unmarshal(b, new(whole)) // it may return an error or not, but must not panic
	})
}
