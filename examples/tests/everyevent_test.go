package examples_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/store"
)

// everyRecording yields all runs with allocator events in this repository: the runs on a real GPU in the stores, and
// the phantom GPU's journals and snapshots in ingest's testdata. In short mode it leaves out stores that are kept
// without tables, and yields every fourth run.
func everyRecording(t *testing.T) iter.Seq2[string, *example] {
	t.Helper()
	var runs []store.Run
	add := func(folder string) {
		found, damaged, err := store.Open(folder).Runs()
		if err != nil || len(damaged) > 0 {
			t.Fatalf("%s: damaged %v, %v", folder, damaged, err)
		}
		runs = append(runs, found...)
	}
	for _, folder := range storeFolders(t) {
		file := schemas.ManifestFile
		if testing.Short() { // making tables for stores that are kept without them takes longest
			file = schemas.IngestReportFile
		}
		if runs, _ := filepath.Glob(filepath.Join(folder, "*", file)); len(runs) > 0 {
			add(ingesttest.Store(t, folder))
		}
	}
	real := len(runs)
	add(otherRecordings(t))
	if real < 8 || len(runs)-real < 8 {
		t.Fatalf("%d recordings of real GPUs, %d others", real, len(runs)-real)
	}
	return func(yield func(string, *example) bool) {
		for i, r := range runs {
			if testing.Short() && i%4 != 0 {
				continue
			}
			tab, err := store.Load(r, schemas.WantMemory|schemas.WantTimes)
			if err != nil {
				t.Fatal(err)
			}
			e := &example{r, *tab}
			if len(e.in.Allocations) > 0 && !yield(filepath.Base(filepath.Dir(r.Dir))+"/"+r.Manifest.Name, e) {
				return
			}
		}
	}
}

// otherRecordings makes a store from the journals and memory snapshots in ingest's testdata.
func otherRecordings(t *testing.T) string {
	dir := t.TempDir()
	journals, err := filepath.Glob("../ingest/testdata/journals/*.dps.zst")
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range journals {
		name := strings.TrimSuffix(filepath.Base(path), ".dps.zst")
		id := fmt.Sprintf("20260102T0304%02dZ-%s-000000", i, name)
		folder := filepath.Join(dir, id, spool.Dir)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, spool.SealedName(0)), b, 0o644); err != nil {
			t.Fatal(err)
		}
		m := &schemas.Manifest{RunID: id, Name: name, Source: schemas.Predicted, Status: schemas.StatusOK,
			Bare: name == "bare"}
		if err := schemas.WriteManifest(filepath.Dir(folder), m); err != nil {
			t.Fatal(err)
		}
		if _, err := ingest.Run(filepath.Dir(folder), ingest.Options{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, pattern := range []string{"../ingest/torchsnap/testdata/*.pickle.zst",
		"../ingest/replay/testdata/*.pickle.zst"} {
		snapshots, err := filepath.Glob(pattern)
		if err != nil || len(snapshots) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range snapshots {
			if strings.Contains(path, "-rounding.") || strings.Contains(path, "-split.") {
				continue // the sizes of these blocks depend on settings that a manifest does not have
			}
			if _, err := ingest.Import(path, dir, ingest.Options{}); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
	return dir
}

// allocated replays a device's events and returns the allocated bytes just after each event.
func allocated(t *testing.T, e *example, rank, device int32) []int64 {
	t.Helper()
	rows, err := schemas.Events.Read(e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var events schemas.EventColumns
	for i := range rows {
		if r := &rows[i]; r.Rank == rank && r.Device == device {
			events.Append(schemas.Action(r.Action), r.Addr, r.Size, r.Stream, r.TimeNS, uint32(r.Mark), uint32(r.Stack),
				r.Pool)
		}
	}
	blocks, err := schemas.Segments.ReadOptional(e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var final []schemas.SegmentBlock
	var gaps []replay.Gap
	for i, a := range events.Action {
		if a == schemas.ActionGap { // its list of blocks is empty if the device was not used before
			gaps = append(gaps, replay.Gap{Seq: int64(i) + 1})
		}
	}
	for _, b := range blocks {
		switch {
		case b.Rank != rank || b.Device != device:
		case b.At == schemas.ListLast:
			final = append(final, b)
		case b.At == schemas.ListWindow:
			g := slices.IndexFunc(gaps, func(g replay.Gap) bool { return g.Seq == b.Seq })
			if g < 0 {
				t.Fatalf("%s: a list of blocks of event %d, which is no gap", e.Manifest.Name, b.Seq)
			}
			gaps[g].List = append(gaps[g].List, b)
		}
	}
	var settings replay.Settings
	if env := e.Manifest.Environment; env != nil {
		settings = settingsOf(t, env)
	}
	res, err := replay.Run(&events, settings, gaps, final)
	if err != nil {
		t.Fatal(err)
	}
	return res.Allocated
}

// settingsOf returns the allocator's settings for replay. The manifest has them as torch reports them.
func settingsOf(t *testing.T, env *schemas.Environment) replay.Settings {
	t.Helper()
	b, err := json.Marshal(env.AllocatorSettings)
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Expandable   bool             `json:"expandable_segments"`
		MaxSplitSize float64          `json:"max_split_size"` // unlimited is -1, or the greatest integer
		Divisions    map[string]int64 `json:"roundup_power2_divisions"`
	}
	if err := json.Unmarshal(b, &recorded); err != nil {
		t.Fatal(err)
	}
	s := replay.Settings{ExpandableSegments: recorded.Expandable}
	if n := recorded.MaxSplitSize; n > 0 && n < 1<<62 {
		s.MaxSplitSize = int64(n)
	}
	for size, n := range recorded.Divisions {
		mib, err := strconv.ParseInt(size, 10, 64)
		if err == nil {
			err = s.SetDivisions(mib, n)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// At every event of every device of every recording, the categories sum exactly to the allocated bytes of replay. The
// test computes the sums in one sweep over the events. At some events a breakdown that is computed separately must
// agree.
func TestCategoriesSumAtEveryEvent(t *testing.T) {
	random := rand.New(rand.NewPCG(20, 26))
	events := 0
	for name, e := range everyRecording(t) {
		run, err := timeline.CategoryTimeline(e.in, timeline.EventRange{}, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range run.Devices {
			d := &run.Devices[i]
			want := allocated(t, e, d.Rank, deviceNumber(t, d.Device))
			if len(d.Points) != len(want) {
				t.Errorf("%s, %s: %d states, the replay has %d", name, d.Device, len(d.Points), len(want))
				continue
			}
			events += len(want) - 1
			wrong := 0
			for seq := range d.Points {
				p := &d.Points[seq]
				if sum := sumOf(p.Bytes); p.HighEvent != int64(seq) || p.HighBytes != want[seq] ||
					p.LowBytes != want[seq] || sum != want[seq] ||
					slices.Min(p.Bytes) < 0 || !slices.Equal(p.Bytes, p.MaxBytes) {
					if wrong++; wrong <= 3 {
						t.Errorf("%s, %s, event %d: the categories sum to %d (%d to %d), replayed are %d: %+v", name,
							d.Device, seq, sum, p.LowBytes, p.HighBytes, want[seq], *p)
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%s, %s: %d of %d events are wrong", name, d.Device, wrong, len(want))
			}
			checks := 1
			if testkit.WithRest() {
				checks = 5
			}
			for range checks {
				sameAsBreakdown(t, name, e, d, random.Int64N(int64(len(want))))
			}
			sameAsBreakdown(t, name, e, d, d.RunPeakAt.Event)
			keepsExtremes(t, name, e, d, want)
		}
	}
	if events < 50_000 {
		t.Errorf("only %d events were looked at", events)
	}
}

func sumOf(bytes []int64) (sum int64) {
	for _, b := range bytes {
		sum += b
	}
	return sum
}

func deviceNumber(t *testing.T, name string) (n int32) {
	t.Helper()
	if _, err := fmt.Sscanf(name, "cuda:%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// sameAsBreakdown compares the sweep's figures at one event with a breakdown that counts every block separately.
func sameAsBreakdown(t *testing.T, name string, e *example, d *timeline.DeviceTimeline, seq int64) {
	t.Helper()
	run, err := memory.Breakdown(e.in, memory.At{Event: &seq})
	if err != nil {
		t.Fatal(err)
	}
	for i := range run.Devices {
		b := &run.Devices[i]
		if b.Device != d.Device || b.Rank != d.Rank {
			continue
		}
		p := &d.Points[seq]
		if b.AllocatedBytes != p.HighBytes {
			t.Errorf("%s, %s, event %d: the breakdown sums to %d, the sweep to %d", name, d.Device, seq,
				b.AllocatedBytes, p.HighBytes)
		}
		for c, m := range d.Categories {
			if got := b.Category(m.Category).Bytes; got != p.Bytes[c] {
				t.Errorf("%s, %s, event %d: %s has %d bytes in the breakdown, %d in the sweep", name, d.Device, seq,
					m.Category, got, p.Bytes[c])
			}
			if got := b.Category(m.Category).MaxBytes; got != m.MaxBytes {
				t.Errorf("%s, %s: the maximum of %s is %d in the breakdown, %d in the timeline", name, d.Device,
					m.Category, got, m.MaxBytes)
			}
		}
		return
	}
	t.Errorf("%s: no breakdown of %s at event %d", name, d.Device, seq)
}

// keepsExtremes checks that the points of a reduced timeline have the lowest and the highest values of all the events
// that they stand for.
func keepsExtremes(t *testing.T, name string, e *example, all *timeline.DeviceTimeline, want []int64) {
	t.Helper()
	const points = 37
	run, err := timeline.CategoryTimeline(e.in, timeline.EventRange{Device: all.Device}, points)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(run.Devices, func(d timeline.DeviceTimeline) bool { return d.Rank == all.Rank })
	few := &run.Devices[i]
	next := int64(0)
	for k := range few.Points {
		p := &few.Points[k]
		if p.FromEvent != next || p.ToEvent < p.FromEvent {
			t.Fatalf("%s, %s: point %d is of events %d to %d, the one before ends at %d", name, all.Device, k,
				p.FromEvent, p.ToEvent, next-1)
		}
		next = p.ToEvent + 1
		part := want[p.FromEvent:next]
		if p.LowBytes != slices.Min(part) || p.HighBytes != slices.Max(part) || want[p.LowEvent] != p.LowBytes ||
			want[p.HighEvent] != p.HighBytes {
			t.Errorf("%s, %s: %+v; the events go from %d to %d", name, all.Device, p, slices.Min(part),
				slices.Max(part))
		}
		if !slices.Equal(p.Bytes, all.Points[p.HighEvent].Bytes) {
			t.Errorf("%s, %s: at event %d there are %v, not %v", name, all.Device, p.HighEvent,
				all.Points[p.HighEvent].Bytes, p.Bytes)
		}
		for c := range few.Categories {
			var most int64
			for seq := p.FromEvent; seq <= p.ToEvent; seq++ {
				most = max(most, all.Points[seq].Bytes[c])
			}
			if p.MaxBytes[c] != most {
				t.Errorf("%s, %s, events %d to %d: %s reaches %d, not %d", name, all.Device, p.FromEvent, p.ToEvent,
					few.Categories[c].Category, most, p.MaxBytes[c])
			}
		}
	}
	if next != int64(len(want)) || len(few.Points) != min(points, len(want)) || few.PeakBytes != slices.Max(want) {
		t.Errorf("%s, %s: %d points to event %d of %d, peak %d", name, all.Device, len(few.Points), next-1, len(want)-1,
			few.PeakBytes)
	}
	for c, m := range few.Categories {
		at := slices.IndexFunc(all.Points, func(p timeline.TimelinePoint) bool { return p.Bytes[c] == m.MaxBytes })
		if int64(at) != m.At.Event || m.AtPeakBytes != all.Points[few.RunPeakAt.Event].Bytes[c] ||
			m.AllocatedBytes != want[at] {
			t.Errorf("%s, %s: the maximum is first reached at event %d: %+v", name, all.Device, at, m)
		}
	}
}

// A row of owners.parquet lies within the life of its block. Rows of one category for a block do not overlap. Together
// a block's rows cover its life without a gap. A row whose end was not observed ends with the block, and a row whose
// end was observed ends earlier.
func TestOwnershipsLieWithinLives(t *testing.T) {
	const never = int64(1) << 62
	for name, e := range everyRecording(t) {
		type key struct {
			rank, device int32
			id           int64
		}
		rows, err := schemas.Owners.Read(e.Dir) // all columns: analyses do not load whether an end was observed
		if err != nil {
			t.Fatal(err)
		}
		owners := map[key][]*schemas.Owner{}
		for i := range rows {
			o := &rows[i]
			k := key{o.Rank, o.Device, o.AllocID}
			owners[k] = append(owners[k], o)
		}
		wrong := 0
		report := func(a *schemas.Allocation, o *schemas.Owner, what string) {
			if wrong++; wrong > 3 {
				return
			}
			text := ""
			if o != nil {
				text = fmt.Sprintf("%s (%s) from %d to %d, observed %t", o.Category, o.Evidence, o.BeginSeq, o.EndSeq,
					o.EndObserved)
			}
			t.Errorf("%s, cuda:%d, block %d from %d to %d: %s %s", name, a.Device, a.AllocID, a.AllocSeq,
				a.FreeRequestedSeq, what, text)
		}
		ends := func(seq int64) int64 {
			if seq == 0 {
				return never
			}
			return seq
		}
		for i := range e.in.Allocations {
			a := &e.in.Allocations[i]
			k := key{a.Rank, a.Device, a.AllocID}
			of, end := owners[k], ends(a.FreeRequestedSeq)
			delete(owners, k)
			slices.SortFunc(of, func(a, b *schemas.Owner) int { return cmp.Compare(a.BeginSeq, b.BeginSeq) })
			last := map[schemas.Category]int64{}
			covered := a.AllocSeq
			for _, o := range of {
				switch to := ends(o.EndSeq); {
				case o.BeginSeq < a.AllocSeq || to > end:
					report(a, o, "an ownership reaches beyond its life:")
				case to <= o.BeginSeq:
					report(a, o, "an ownership never holds:")
				case o.EndObserved != (to < end):
					report(a, o, "an end that was seen is the block's own, or one before it was not seen:")
				case o.BeginSeq < last[o.Category]:
					report(a, o, "an owner holds twice:")
				case o.BeginSeq > covered:
					report(a, o, "nobody owns it until")
				}
				last[o.Category] = max(last[o.Category], ends(o.EndSeq))
				if o.BeginSeq <= covered {
					covered = max(covered, ends(o.EndSeq))
				}
			}
			if covered < end {
				report(a, nil, fmt.Sprintf("nobody owns it from %d on", covered))
			}
		}
		for k, of := range owners {
			t.Errorf("%s: %d ownerships of block %d, which there is not", name, len(of), k.id)
		}
		if wrong > 0 {
			t.Errorf("%s: %d ownerships are wrong", name, wrong)
		}
	}
}
