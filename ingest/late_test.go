package ingest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/torchsnap"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// captures calls f with every recording in the repository: the examples, torch's own snapshots, and generated ones.
func captures(t *testing.T, f func(name string, rec *recording)) {
	t.Helper()
	glob := func(pattern string) []string {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v, %v", pattern, paths, err)
		}
		return paths
	}
	var journals []string
	err := filepath.WalkDir("../examples", func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "rank-0.dps.zst" {
			journals = append(journals, path)
		}
		return err
	})
	if err != nil || len(journals) == 0 {
		t.Fatal(journals, err)
	}
	for _, path := range slices.Concat(journals, glob("testdata/journals/*.dps.zst")) {
		sealed := path
		if filepath.Base(path) != "rank-0.dps.zst" { // only sealed journals have this name
			sealed = filepath.Join(t.TempDir(), "rank-0.dps.zst")
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(sealed, data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		j, err := spool.OpenSealed(sealed)
		if err != nil {
			t.Fatal(path, err)
		}
		for _, rec := range read(j, torchsnap.NewStacks()) {
			if rec.broken == nil {
				f(path, rec)
			}
		}
	}
	snapshots := slices.Concat(glob("replay/testdata/*.pickle.zst"), glob("torchsnap/testdata/*.pickle.zst"),
		generated(t))
	for _, path := range snapshots {
		s, err := readSnapshot(path)
		if err != nil {
			t.Fatal(path, err)
		}
		settings, err := replaySettings(s.Settings)
		if err != nil {
			t.Fatal(err)
		}
		for d := range s.Devices {
			n := int64(s.Devices[d].Len())
			f(path, &recording{device: int32(d), events: s.Devices[d], settings: settings,
				final: blocks(s, int32(d), n, schemas.ListLast)})
		}
	}
}

func generated(t *testing.T) (paths []string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Log("no python3 on PATH: without the generated snapshots")
		return nil
	}
	dir := t.TempDir()
	for seed := range 8 {
		out := filepath.Join(dir, fmt.Sprintf("generated-%d.pickle", seed))
		cmd := exec.Command(python, "testdata/tools/make_snapshot.py", "8000", out, "1", strconv.Itoa(seed))
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, msg)
		}
		paths = append(paths, out)
	}
	return paths
}

// from returns a copy of the recording as it would be if it had begun after the first cut events.
func (rec *recording) from(cut int) *recording {
	e := &rec.events
	n := e.Len()
	late := &recording{device: rec.device, settings: rec.settings, final: slices.Clone(rec.final),
		events: e.Part(cut, n)}
	for i := range late.final {
		late.final[i].Seq -= int64(cut)
	}
	for _, g := range rec.gaps {
		if g.Seq > int64(cut) {
			late.gaps = append(late.gaps, replay.Gap{Seq: g.Seq - int64(cut), List: g.List})
		}
	}
	return late
}

// A recording may begin late, or its ring buffer may overwrite its oldest events. The verdict on such a recording is
// exact only if the peak is right. If its verdict is bounded, the true values lie within the bounds, at each moment.
func TestLateRecordings(t *testing.T) {
	var captured, cuts, toTheByte int
	verdicts := map[string]int{}
	var widths []float64 // distances between the bounds of peaks, in percent of the peak
	captures(t, func(name string, rec *recording) {
		whole, v, err := rec.replayed()
		if err != nil {
			t.Fatal(name, err)
		}
		if whole == nil || v.Verdict != schemas.Exact {
			return
		}
		captured++
		for place := range 8 {
			cut := rec.events.Len() * (place + 1) / 9
			truth, _ := whole.PeakBetween(int64(cut), whole.Events)
			res, v, err := rec.from(cut).replayed()
			if err != nil {
				t.Fatal(name, err)
			}
			cuts++
			verdicts[v.Verdict]++
			if v.PeakAllocatedBytes == truth {
				toTheByte++
			}
			low, high := v.PeakAllocatedBytes, v.PeakAllocatedBytes
			switch v.Verdict {
			case schemas.Exact:
			case schemas.Bounded:
				low, high = *v.PeakLowBytes, *v.PeakHighBytes
				widths = append(widths, float64(high-low)/float64(truth)*100)
			default: // such a verdict claims nothing
				continue
			}
			if low > truth || high < truth {
				t.Errorf("%s, from event %d: the peak is %d, but said to be %s, at least %d, at most %d", name, cut, truth,
					v.Verdict, low, high)
			}
			open := openAt(res)
			for i, low := range res.Allocated {
				if truth := whole.Allocated[cut+i]; low > truth || low+open[i] < truth {
					t.Fatalf("%s, from event %d: %d are allocated after event %d, but said to be at least %d, at most %d",
						name, cut, truth, i, low, low+open[i])
				}
			}
		}
	})
	slices.Sort(widths)
	t.Logf("%d cuts of %d captures: %d to the byte; verdicts %v; bounds of peaks are %.2f %% apart at the median, "+
		"%.2f %% at most", cuts, captured, toTheByte, verdicts, widths[len(widths)/2], widths[len(widths)-1])
	if captured < 100 || toTheByte*10 < cuts*9 || verdicts[schemas.Exact] == 0 || verdicts[schemas.Bounded] == 0 {
		t.Error("too few captures, or too few peaks to the byte")
	}
}

// openAt returns, for each event, how many bytes the true allocated may lie above the replayed allocated.
func openAt(res *replay.Result) []int64 {
	open := make([]int64, res.Events+1)
	for i := range res.Allocs {
		if a := &res.Allocs[i]; a.Open > 0 {
			for seq := int64(0); seq <= res.Events && a.LiveAt(seq); seq++ {
				open[seq] += a.Open
			}
		}
	}
	return open
}

// The verdict is never exact for a trace that torch cannot have written, or that this version of dpsight cannot read.
func TestOddTraces(t *testing.T) {
	s, err := readSnapshot("torchsnap/testdata/vanilla.pickle.zst")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spoil   func(e *schemas.EventColumns)
		verdict string
		warning string
	}{
		"nothing":        {func(*schemas.EventColumns) {}, schemas.Exact, ""},
		"unknown action": {func(e *schemas.EventColumns) { e.Action[100] = 0 }, schemas.Lossy, "event has an action that"},
		"only unknown actions": {func(e *schemas.EventColumns) { clear(e.Action) }, schemas.Lossy,
			"actions"},
		"times run backwards": {func(e *schemas.EventColumns) { e.TimeNS[100] = e.TimeNS[101] + 1000 },
			schemas.Unverifiable, "backwards"},
	} {
		var e schemas.EventColumns
		e.AppendAll(&s.Devices[0])
		c.spoil(&e)
		rec := &recording{events: e, final: blocks(s, 0, int64(e.Len()), schemas.ListLast)}
		res, v, err := rec.replayed()
		if err != nil || v.Verdict != c.verdict || v.Verdict != schemas.Exact && v.Reason == "" {
			t.Errorf("%s: %q (%s), %v", name, v.Verdict, v.Reason, err)
			continue
		}
		r := newReport(&schemas.Manifest{}, Options{})
		r.warnOfReplay(0, rec, res)
		if all := strings.Join(r.Warnings, "\n"); c.warning == "" && all != "" || !strings.Contains(all, c.warning) {
			t.Errorf("%s: warnings %q", name, all)
		}
	}
}

// without returns the recording without its events from first to last. torch's counters still count these events.
func (rec *recording) without(first, last int) *recording {
	e, n := &rec.events, rec.events.Len()
	lost := &recording{device: rec.device, settings: rec.settings, final: slices.Clone(rec.final),
		checkpoints: slices.Clone(rec.checkpoints), peaksSince: slices.Clone(rec.peaksSince), unseen: rec.unseen,
		baseline: rec.baseline, everUsed: rec.everUsed}
	for _, kept := range [][2]int{{0, first}, {last, n}} {
		part := e.Part(kept[0], kept[1])
		lost.events.AppendAll(&part)
	}
	moved := func(seq int64) int64 { return min(seq, max(int64(first), seq-int64(last-first))) }
	for i := range lost.final {
		lost.final[i].Seq = moved(lost.final[i].Seq)
	}
	for i := range lost.checkpoints {
		lost.checkpoints[i].Seq, lost.peaksSince[i] = moved(lost.checkpoints[i].Seq), moved(lost.peaksSince[i])
	}
	for _, g := range rec.gaps {
		lost.gaps = append(lost.gaps, replay.Gap{Seq: moved(g.Seq), List: g.List})
	}
	return lost
}

// The verdict on a journal is not exact if the journal begins late, lacks events in its middle, or has only counters.
func TestLateJournals(t *testing.T) {
	cases, verdicts := 0, map[string]map[string]int{"late": {}, "gap": {}, "counters": {}}
	captures(t, func(name string, rec *recording) {
		if len(rec.checkpoints) == 0 {
			return
		}
		whole, v, err := rec.replayed()
		if err != nil {
			t.Fatal(name, err)
		}
		if whole == nil || v.Verdict != schemas.Exact || rec.events.Len() < 100 {
			return
		}
		n := rec.events.Len()
		for what, lost := range map[string]*recording{"late": rec.without(0, n/3), "gap": rec.without(n/3, n/2),
			"counters": rec.without(0, n)} {
			cases++
			_, got, err := lost.replayed()
			if err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
				continue
			}
			verdicts[what][got.Verdict]++
			if got.Verdict == schemas.Exact || got.Verdict == schemas.Bounded &&
				(*got.PeakLowBytes > v.PeakAllocatedBytes || *got.PeakHighBytes < v.PeakAllocatedBytes) {
				t.Errorf("%s, %s: the peak is %d, and said to be %s: %+v", name, what, v.PeakAllocatedBytes, got.Verdict, got)
			}
			if got.Reason == "" {
				t.Errorf("%s, %s: %s without a reason", name, what, got.Verdict)
			}
		}
	})
	t.Log(cases, verdicts)
	if cases < 30 {
		t.Errorf("%d cases", cases)
	}
}
