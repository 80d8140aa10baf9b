package blocks

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
)

// sums returns the bytes of each category just after an event, summed over the device's pieces of blocks.
func sums(d *Device, seq int64) []int64 {
	out := make([]int64, memory.NCategories)
	for i, kind := range d.Kind {
		if int64(d.Begin[i]) <= seq && (d.End[i] == 0 || int64(d.End[i]) > seq) {
			k := &d.Kinds[kind]
			out[k.Category] += k.Requested
			out[memory.SlackPlace] += k.Slack
		}
	}
	return out
}

// At each event, the pieces of blocks give the same bytes for each category as the ledger of package memory. If the
// pieces are limited to a window of events, they still give these bytes at each event of the window.
func TestPiecesSayWhatTheLedgerSays(t *testing.T) {
	several := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		in, allocated := fixture.RandomRun(r)
		devices, err := Of(&in)
		if err != nil || len(devices) != len(allocated) {
			t.Fatalf("seed %d: %d devices of %d, %v", seed, len(devices), len(allocated), err)
		}
		for i := range devices {
			d := &devices[i]
			several += int(slices.Max(d.Next))
			var place identity.Place
			for p := range allocated {
				if p.String() == d.Device && p.Rank == d.Rank {
					place = p
				}
			}
			l, counts := memory.NewLedger(&in, place), allocated[place]
			last := int64(len(counts)) - 1
			from := r.Int64N(last)
			within := d.Within(from, from+r.Int64N(last-from+1))
			for seq, total := range counts {
				seq := int64(seq)
				want := make([]memory.CategoryBytes, memory.NCategories)
				for b := range l.Len() {
					if l.LiveAt(b, seq) {
						l.Count(want, b, seq)
					}
				}
				got, sum := sums(d, seq), int64(0)
				for c, bytes := range got {
					if sum += bytes; bytes != want[c].Bytes {
						t.Fatalf("seed %d, event %d, category %d: %d, want %d", seed, seq, c, bytes, want[c].Bytes)
					}
				}
				if sum != total {
					t.Fatalf("seed %d, event %d: %d of %d bytes", seed, seq, sum, total)
				}
				if seq >= within.From && seq <= within.To && !slices.Equal(sums(&within, seq), got) {
					t.Fatalf("seed %d: event %d of the window %d to %d differs", seed, seq, within.From, within.To)
				}
			}
		}
	}
	if several == 0 {
		t.Error("no block has several pieces")
	}
}
