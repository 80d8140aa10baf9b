package table

import (
	"bytes"
	"slices"
	"testing"
)

// A table prints the same text whether its rows come from a slice or from a stream.
func TestStream(t *testing.T) {
	rows := [][]Cell{{Text("a"), Bytes(3 << 20), Count(1)}, {Text("b"), Absent(), Count(20_000)}}
	plain := Table{Title: "title", Columns: []Column{{Title: "Name", Key: "name"}, {Title: "MiB", Key: "bytes",
		Right: true}, {Key: "n", For: Programs}}, Rows: rows}
	streamed := plain
	streamed.Rows, streamed.Stream = nil, slices.Values(rows)
	for _, f := range Formats {
		var a, b bytes.Buffer
		if err := Write(&a, f.Name, plain, plain); err != nil {
			t.Fatal(err)
		}
		if err := Write(&b, f.Name, streamed, streamed); err != nil {
			t.Fatal(err)
		}
		if a.String() != b.String() || !bytes.Contains(a.Bytes(), []byte("b")) {
			t.Errorf("%s: from a stream\n%s\nfrom rows\n%s", f.Name, b.String(), a.String())
		}
	}
}
