package timeline

import (
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Lives of blocks in columns give the same bytes as lives in rows at any moment. The two agree for several devices, for
// owners in any order, and for unknown categories.
func TestLivesSayWhatRowsSay(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 11))
		in, allocated := fixture.RandomRun(r)
		for i := range in.Owners {
			if r.IntN(9) == 0 {
				in.Owners[i].Category = "of another version"
			}
		}
		for i := range in.Allocations {
			if r.IntN(5) == 0 {
				in.Allocations[i].OpenBytes = 512
			}
		}
		in.Report.Schema, in.Report.Tables = schemas.IngestReportSchema, nil
		run := store.Run{ID: "run", Dir: t.TempDir(), Manifest: in.Manifest}
		err := errors.Join(schemas.Allocations.Write(run.Dir, in.Allocations), schemas.Owners.Write(run.Dir, in.Owners),
			schemas.Steps.Write(run.Dir, in.Steps), schemas.Phases.Write(run.Dir, in.Phases),
			schemas.Marks.Write(run.Dir, nil), schemas.Reserved.Write(run.Dir, in.Reserved),
			schemas.WriteFile(filepath.Join(run.Dir, schemas.IngestReportFile),
				func(w io.Writer) error { return in.Report.Encode(w) }))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := store.Load(run, memory.LedgerTables&^schemas.WantEvents|schemas.WantReserved)
		if err != nil {
			t.Fatal(err)
		}
		lives, err := store.Load(run, memory.BreakdownTables)
		if err != nil || len(lives.Allocations) > 0 || len(lives.Lives) == 0 {
			t.Fatalf("%d rows, %d devices, %v", len(lives.Allocations), len(lives.Lives), err)
		}
		var events int64
		for _, counts := range allocated {
			events = max(events, int64(len(counts))-1)
		}
		for _, at := range []memory.At{{}, {Event: new(r.Int64N(events))}, {Event: new(int64(0))}} {
			want, err := memory.Breakdown(*rows, at)
			got, gotErr := memory.Breakdown(*lives, at)
			if !reflect.DeepEqual(got, want) || (err == nil) != (gotErr == nil) {
				t.Fatalf("seed %d, at %v: %+v, %v, want %+v, %v", seed, at, got, gotErr, want, err)
			}
		}
		want, err := CategoryTimeline(*rows, EventRange{}, 7)
		got, gotErr := CategoryTimeline(*lives, EventRange{}, 7)
		if !reflect.DeepEqual(got, want) || err != nil || gotErr != nil {
			t.Fatalf("seed %d: %+v, %v, want %+v, %v", seed, got, gotErr, want, err)
		}
	}
}
