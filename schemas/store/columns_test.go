package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// Values that are read by columns equal the written values, over several pages and row groups.
func TestColumnsAreTheRows(t *testing.T) {
	dir := t.TempDir()
	const n = 120_000
	blocks, who := make([]schemas.Allocation, n), make([]schemas.Owner, n)
	for i := range blocks {
		k := int64(i)
		blocks[i] = schemas.Allocation{Rank: int32(i % 2), Device: int32(i % 3), AllocID: k, Address: uint64(k) << 20,
			RequestedBytes: k * 3, BlockBytes: k * 4, AllocSeq: k + 1,
			Step: k % 5, Microbatch: int32(i % 2), Phase: schemas.PhaseForward, Module: k % 11, Op: "mm", Stack: k % 13}
		who[i] = schemas.Owner{Rank: int32(i % 2), Device: int32(i % 3), AllocID: k,
			Category: schemas.Categories[i%len(schemas.Categories)], BeginSeq: k, Evidence: schemas.Tagged,
			Name: "head.weight", Module: k % 11}
		if i%7 == 0 {
			blocks[i].FreeRequestedSeq, who[i].EndSeq = k+9, k+8
		}
	}
	if err := errors.Join(schemas.Allocations.Write(dir, blocks), schemas.Owners.Write(dir, who)); err != nil {
		t.Fatal(err)
	}
	gotBlocks, err := allocations(dir, true, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	gotOwners, err := owners(dir, true, true, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(gotBlocks) != n || len(gotOwners) != n {
		t.Fatalf("%d blocks, %d owners", len(gotBlocks), len(gotOwners))
	}
	for i := range blocks {
		if gotBlocks[i] != blocks[i] || gotOwners[i] != who[i] {
			t.Fatalf("row %d: %+v and %+v, want %+v and %+v", i, gotBlocks[i], gotOwners[i], blocks[i], who[i])
		}
	}
	w := &Window{Rank: 1, Device: 2, From: n / 2, To: n/2 + n/8}
	var blocksWithin []schemas.Allocation
	var whoWithin []schemas.Owner
	for i := range blocks {
		b := &blocks[i]
		ended := b.FreeRequestedSeq != 0 && b.FreeRequestedSeq <= w.From
		if b.Rank == w.Rank && b.Device == w.Device && b.AllocSeq <= w.To && !ended {
			blocksWithin, whoWithin = append(blocksWithin, *b), append(whoWithin, who[i])
		}
	}
	gotBlocks, err = allocations(dir, true, true, w)
	if err != nil || !slices.Equal(gotBlocks, blocksWithin) || len(gotBlocks) == 0 {
		t.Errorf("%d blocks within a window, want %d, %v", len(gotBlocks), len(blocksWithin), err)
	}
	if gotOwners, err = owners(dir, true, true, w, gotBlocks); err != nil || !slices.Equal(gotOwners, whoWithin) {
		t.Errorf("%d owners within a window, want %d, %v", len(gotOwners), len(whoWithin), err)
	}
	// Columns with detail, such as the phase, are read only on request.
	if b, err := allocations(dir, true, false, nil); err != nil || b[20].AllocSeq != 21 || b[20].Phase != "" ||
		b[20].Module != 0 {
		t.Errorf("%+v, %v", b[20], err)
	}
	if o, err := owners(dir, true, false, nil, nil); err != nil || o[20].Category == "" || o[20].Name != "" ||
		o[20].Module != 0 {
		t.Errorf("%+v, %v", o[20], err)
	}
}

func TestColumnsOfWhatIsNoTable(t *testing.T) {
	dir := t.TempDir()
	if _, err := allocations(dir, true, true, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent table: %v", err)
	}
	if rows, err := allocations(dir, false, true, nil); err != nil || rows != nil {
		t.Errorf("an absent table that is not needed: %v, %v", rows, err)
	}
	path := filepath.Join(dir, schemas.Allocations.File())
	if err := schemas.Owners.Write(dir, []schemas.Owner{{AllocID: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, schemas.Owners.File()), path); err != nil {
		t.Fatal(err)
	}
	var schema *schemas.SchemaError
	if _, err := allocations(dir, true, true, nil); !errors.As(err, &schema) {
		t.Errorf("another table: %v", err)
	}
	if err := schemas.Allocations.Write(dir, make([]schemas.Allocation, 1000)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut < len(whole); cut += 1 + len(whole)/40 {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := allocations(dir, true, true, nil); err == nil {
			t.Errorf("cut at %d of %d bytes: no error", cut, len(whole))
		}
	}
	// If a file is damaged, reading returns an error or values, and does not panic.
	for at := 0; at < len(whole); at += 1 + len(whole)/200 {
		damaged := slices.Clone(whole)
		damaged[at] ^= 1 << (at % 8)
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if rows, err := allocations(dir, true, true, nil); err == nil && len(rows) != 1000 {
			t.Errorf("byte %d damaged: %d rows and no error", at, len(rows))
		}
	}
}

// Samples that are read by columns equal samples that are read by rows. Only the run id, which every row repeats, is
// left out.
func TestSamplesAreTheRows(t *testing.T) {
	dir := t.TempDir()
	if rows, err := samples(dir); rows != nil || err != nil {
		t.Errorf("without a table: %v, %v", rows, err)
	}
	full := schemas.Sample{RunID: "run", Rank: 1, Device: 2, TimeNS: 3, UsedBytes: 4, ReservedBytes: 5, FreeBytes: 6,
		MemoryAPI: 2, ProcessBytes: new(int64(7)), OtherProcesses: 8,
		SMPercent: new(int32(9)), MemoryPercent: new(int32(10)), PowerMW: new(int64(11)), EnergyMJ: new(int64(12)),
		TemperatureC: new(int32(13)), SMClockMHz: new(int32(14)),
		MemoryClockMHz: new(int32(15)), ThrottleReasons: new(int64(16))}
	if err := schemas.Samples.Write(dir, []schemas.Sample{full, {RunID: "run", SMPercent: new(int32(0))},
		{RunID: "run"}}); err != nil {
		t.Fatal(err)
	}
	want, err := schemas.Samples.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		want[i].RunID = ""
	}
	got, err := samples(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for i, v := range reflect.ValueOf(want[0]).Fields() {
		if v.IsZero() && i.Name != "RunID" {
			t.Errorf("%s is not looked at here", i.Name)
		}
	}
}

// The event of a gradient's write is found by marks. The write's event is the last event at which the highest mark so
// far is below the mark of the gradient's hook. If only a survey tagged the gradient, it was written earlier, and is
// left out.
func TestGradientWrites(t *testing.T) {
	dir := t.TempDir()
	var events []schemas.Event
	for i, mark := range []int64{1, 1, 4, 3, 7, 9} { // the fourth event is from another thread
		events = append(events, schemas.Event{Seq: int64(i + 1), Action: int32(schemas.ActionAlloc), Mark: mark})
	}
	marks := []schemas.Mark{{K: 2, Kind: "tag", Category: "parameter", Address: 1},
		{K: 4, Kind: "tag", Category: gradientTag, Address: 2},
		{K: 5, Kind: "tag", Category: gradientTag, Address: 2}, {K: 6, Kind: surveyMark, A: 5},
		{K: 8, Kind: "tag", Category: gradientTag, Address: 3}, {K: 12, Kind: "tag", Category: gradientTag, Address: 4}}
	if err := errors.Join(schemas.Events.Write(dir, events), schemas.Marks.Write(dir, marks)); err != nil {
		t.Fatal(err)
	}
	got, err := gradientWrites(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []schemas.GradientWrite{{Seq: 2, Address: 2}, {Seq: 5, Address: 3}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A mark of the script belongs to the last event whose mark is lower than the script's mark, on each device of the
// process.
func TestUserMarks(t *testing.T) {
	dir := t.TempDir()
	var events []schemas.Event
	for i, mark := range []int64{1, 4, 4, 9} {
		events = append(events, schemas.Event{Seq: int64(i + 1), Action: int32(schemas.ActionAlloc), Mark: mark})
	}
	marks := []schemas.Mark{{K: 2, Kind: "user_mark", Label: "epoch 1"}, {K: 3, Kind: "phase_begin", Label: "forward"},
		{K: 6, Kind: "user_mark", Label: "epoch 2"}, {K: 12, Kind: "user_mark", Label: "after the last event"}}
	if err := errors.Join(schemas.Events.Write(dir, events), schemas.Marks.Write(dir, marks)); err != nil {
		t.Fatal(err)
	}
	got, err := userMarks(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []schemas.UserMark{{Seq: 1, Label: "epoch 1"}, {Seq: 3, Label: "epoch 2"},
		{Seq: 4, Label: "after the last event"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
