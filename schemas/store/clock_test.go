package store

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

func TestEventClocks(t *testing.T) {
	dir := t.TempDir()
	if _, err := eventClocks(dir, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent table: %v", err)
	}
	if c, err := eventClocks(dir, false); err != nil || c != nil {
		t.Errorf("an absent table that is not needed: %v, %v", c, err)
	}
	const n = 9000 // more than one piece of a column
	var rows []schemas.Event
	for _, p := range [][2]int32{{0, 0}, {0, 2}, {1, 0}} {
		for seq := range int64(n) {
			rows = append(rows, schemas.Event{Rank: p[0], Device: p[1], Seq: seq + 1, TimeNS: seq * int64(1+p[0]+p[1])})
		}
	}
	if err := schemas.Events.Write(dir, rows); err != nil {
		t.Fatal(err)
	}
	clocks, err := eventClocks(dir, true)
	if err != nil || len(clocks) != 3 {
		t.Fatalf("%d clocks, %v", len(clocks), err)
	}
	for i, c := range clocks {
		if c.Rank != rows[i*n].Rank || c.Device != rows[i*n].Device || len(c.TimeNS) != n {
			t.Fatalf("clock %d: rank %d, device %d, %d events", i, c.Rank, c.Device, len(c.TimeNS))
		}
		for k, ns := range c.TimeNS {
			if ns != rows[i*n+k].TimeNS {
				t.Fatalf("clock %d: event %d at %d, want %d", i, k+1, ns, rows[i*n+k].TimeNS)
			}
		}
	}
	if err := schemas.Events.Write(dir, rows[1:]); err != nil {
		t.Fatal(err)
	}
	if _, err := eventClocks(dir, true); err == nil ||
		!strings.Contains(err.Error(), "event 2 of rank 0, device 0 is out of its place") {
		t.Errorf("a gap: %v", err)
	}
}
