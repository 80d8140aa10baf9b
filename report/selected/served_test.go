package selected

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"

	"github.com/dpsight/dpsight/schemas"
)

// streams decodes the Arrow tables of a device. streams returns the tables by their names.
func streams(t *testing.T, b []byte) map[string]arrow.Record {
	t.Helper()
	out := map[string]arrow.Record{}
	for len(b) > 0 {
		n := binary.LittleEndian.Uint32(b)
		r, err := ipc.NewReader(bytes.NewReader(b[4 : 4+n]))
		if err != nil || !r.Next() {
			t.Fatal("no Arrow stream: ", err)
		}
		name, _ := r.Schema().Metadata().GetValue("table")
		record := r.Record()
		record.Retain()
		out[name], b = record, b[4+n:]
		r.Release()
	}
	return out
}

func floats(r arrow.Record, name string) []float64 {
	return r.Column(r.Schema().FieldIndices(name)[0]).(*array.Float64).Float64Values()
}

func wholes(r arrow.Record, name string) []uint32 {
	return r.Column(r.Schema().FieldIndices(name)[0]).(*array.Uint32).Uint32Values()
}

// pointTotals returns the events of the points, and the allocated bytes after each of these events.
func pointTotals(r arrow.Record) (events, from, to []uint32, totals []float64) {
	events, from, to = wholes(r, "event"), wholes(r, "from"), wholes(r, "to")
	totals = make([]float64, len(events))
	for _, c := range schemas.Categories {
		if len(r.Schema().FieldIndices(string(c))) > 0 {
			for i, v := range floats(r, string(c)) {
				totals[i] += v
			}
		}
	}
	return events, from, to, totals
}

// totalsOf returns the sum of the live blocks of a device after each event.
func totalsOf(tables map[string]arrow.Record, events int64) []float64 {
	pieces, kinds := tables["pieces"], tables["kinds"]
	requested, slack := floats(kinds, "requested"), floats(kinds, "slack")
	change := make([]float64, events+2)
	begin := pieces.Column(pieces.Schema().FieldIndices("begin")[0]).(*array.Int32).Int32Values()
	kind, life := wholes(pieces, "kind"), wholes(pieces, "life")
	at := uint32(0)
	for i := range begin {
		at += uint32(begin[i])
		size := requested[kind[i]] + slack[kind[i]]
		change[at] += size
		if life[i] != 0 {
			change[at+life[i]] -= size
		}
	}
	for i := 1; i < len(change); i++ {
		change[i] += change[i-1]
	}
	return change
}

// For any requested range of events, a point has the highest total of its stretch of events, so no extreme is lost. In
// a short range, every event has a point.
func TestServedLosesNoExtreme(t *testing.T) {
	quiet := func(string) {}
	source := &Source{Store: "../../examples/headline", Named: true, Say: quiet, Note: quiet, Warn: quiet}
	names := []string{"vanilla"}
	whole, err := source.Served(names)
	if err != nil {
		t.Fatal(err)
	}
	all, err := whole.Device(0, 0, 1<<40, 10)
	if err != nil {
		t.Fatal(err)
	}
	const most = 2000
	parts, err := source.served(names, most)
	if err != nil {
		t.Fatal(err)
	}
	var about struct {
		Devices []struct {
			Events, From, To int64
			Detail           string
		}
	}
	if err := json.Unmarshal(parts.First.About, &about); err != nil || len(about.Devices) != 1 ||
		about.Devices[0].Detail != "window" || about.Devices[0].To-about.Devices[0].From > most {
		t.Fatalf("%v: %s", err, parts.First.About)
	}
	events := about.Devices[0].Events
	totals := totalsOf(streams(t, all), events)
	r := rand.New(rand.NewPCG(30, 4))
	for i := range 60 {
		from := r.Int64N(events)
		to := from + r.Int64N(events-from+1)
		if i%2 == 0 {
			to = min(to, from+most)
		}
		b, err := parts.Device(0, from, to, 50+r.IntN(500))
		if err != nil {
			t.Fatal(err)
		}
		tables := streams(t, b)
		at, begin, end, bytes := pointTotals(tables["points"])
		for k := range at {
			for e := begin[k]; e <= end[k]; e++ {
				if totals[e] > bytes[k] {
					t.Fatalf("events %d to %d: event %d has %.0f bytes, and the point of %d to %d has %.0f", from, to, e,
						totals[e], begin[k], end[k], bytes[k])
				}
			}
			if totals[at[k]] != bytes[k] {
				t.Fatalf("event %d has %.0f bytes, and its point %.0f", at[k], totals[at[k]], bytes[k])
			}
		}
		if first, last := int64(begin[0]), int64(end[len(end)-1]); first > from || last < to {
			t.Errorf("events %d to %d: points of %d to %d", from, to, first, last)
		}
		if to-from > most {
			if n := tables["pieces"].NumRows(); n != 0 {
				t.Errorf("events %d to %d: %d pieces of blocks", from, to, n)
			}
			continue
		}
		near := totalsOf(tables, events)
		for e := from; e <= to; e++ {
			if near[e] != totals[e] {
				t.Fatalf("events %d to %d: event %d has %.0f bytes, not %.0f", from, to, e, near[e], totals[e])
			}
		}
	}
}
