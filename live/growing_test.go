package live

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// played is a recorded run that is replayed as if it were being recorded. The test writes its journal piece by piece
// into a new run's folder.
type played struct {
	dir           string // the recorded run's folder
	run           string // the new run's folder
	marks, frames []byte
	report        *schemas.IngestReport
	going         bool
}

// play makes a new run in a store, with an empty journal.
func play(t *testing.T, name, store string) *played {
	t.Helper()
	dirs, err := filepath.Glob("../examples/headline/*-" + name + "-*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no recording of "+name, err)
	}
	p := &played{dir: dirs[0], run: filepath.Join(store, filepath.Base(dirs[0])), going: true}
	if p.marks, p.frames, err = spool.Unpack(filepath.Join(p.dir, spool.Dir, spool.SealedName(0))); err != nil {
		t.Fatal(err)
	}
	if p.report, err = schemas.ReadIngestReport(p.dir); err != nil {
		t.Fatal(err)
	}
	m, err := schemas.ReadManifest(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Status, m.End = schemas.StatusPartial, nil
	if err := os.MkdirAll(filepath.Join(p.run, spool.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := schemas.WriteManifest(p.run, m); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *played) path(suffix string) string { return filepath.Join(p.run, spool.Dir, "1-1"+suffix) }

// grow writes the first part of the marks file and of the frames file. Empty space follows the marks, as in a file that
// the agent has mapped ahead of use.
func (p *played) grow(t *testing.T, marks, frames float64) {
	t.Helper()
	ahead := make([]byte, 1<<20)
	at := int(float64(len(p.marks)/spool.RecordSize)*marks) * spool.RecordSize
	write := func(path string, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(p.path(".marks"), append(bytes.Clone(p.marks[:at]), ahead...))
	write(p.path(".frames"), p.frames[:int(float64(len(p.frames))*frames)])
}

func (p *played) view(store string) *View {
	return NewView(quietSource(store), nil, func(dir string) bool { return p.going && dir == p.run })
}

// now reads the view's runs at once, even if they were read just before.
func now(t *testing.T, v *View) *page.Live {
	t.Helper()
	v.looked = time.Time{}
	runs, _ := v.Running()
	if len(runs) != 1 {
		t.Fatalf("%d runs are shown", len(runs))
	}
	return runs[0]
}

// The view shows a growing journal as far as it is written. In the end it shows the same result as ingest, whatever the
// sizes of the pieces were.
func TestGrowingJournal(t *testing.T) {
	r := rand.New(rand.NewPCG(30, 1))
	for _, name := range []string{"vanilla", "ghost", "vanilla-bare"} {
		store := t.TempDir()
		p := play(t, name, store)
		v := p.view(store)
		if l := now(t, v); len(l.Processes) != 0 || l.Name != name || l.Trouble != "" {
			t.Errorf("%s before its journal: %+v", name, l)
		}
		var marks, frames float64
		var last page.LiveProcess
		for marks < 1 {
			marks = min(1, marks+r.Float64()/4)
			frames = min(marks, frames+r.Float64()/4)
			if marks == 1 {
				frames = 1
			}
			p.grow(t, marks, frames)
			l := now(t, v)
			if l.Trouble != "" || len(l.Processes) > 1 {
				t.Fatalf("%s at %.2f, %.2f: %q, %d processes", name, marks, frames, l.Trouble, len(l.Processes))
			}
			if len(l.Processes) == 0 {
				continue
			}
			q := l.Processes[0]
			if q.Steps < last.Steps || q.Events < last.Events || q.DrainNS < last.DrainNS {
				t.Errorf("%s shrinks at %.2f: %+v after %+v", name, marks, q, last)
			}
			for _, d := range q.Devices {
				for _, at := range d.Points {
					if at.TimeNS > q.MarkNS && at.TimeNS > q.DrainNS || at.Low > at.Allocated {
						t.Fatalf("%s: a point lies right of all that was written: %+v", name, at)
					}
				}
			}
			last = q
		}
		whole := page.LiveProcess{}
		another := p.view(store) // a view that begins late reads the whole journal at once
		if whole = now(t, another).Processes[0]; whole.Events != last.Events || whole.Steps != last.Steps ||
			whole.Devices[0].PeakAllocated != last.Devices[0].PeakAllocated ||
			len(whole.Devices[0].Points) != len(last.Devices[0].Points) {
			t.Errorf("%s at once: %+v, piece by piece: %+v", name, whole, last)
		}
		if len(p.report.Devices) != 1 || len(last.Devices) != 1 || last.Steps != 8 && name != "vanilla-bare" {
			t.Fatalf("%s: %d devices, %d steps", name, len(last.Devices), last.Steps)
		}
		if l := now(t, v); l.Planned != last.Steps {
			t.Errorf("%s: %d steps are planned, and there were %d", name, l.Planned, last.Steps)
		}
		verdict, d := p.report.Devices[0], last.Devices[0]
		if last.Events != verdict.Events || d.PeakAllocated != *verdict.TorchPeakAllocatedBytes {
			t.Errorf("%s: %d events, peak %d; ingest found %d and %d", name, last.Events, d.PeakAllocated, verdict.Events,
				*verdict.TorchPeakAllocatedBytes)
		}
		highest, counters := int64(0), 0
		for _, at := range d.Points {
			if at.Counters {
				counters++
			} else {
				highest = max(highest, at.Allocated)
			}
		}
		if verdict.Events > 0 && highest != verdict.PeakAllocatedBytes {
			t.Errorf("%s: the highest point has %d bytes, and the replayed peak is %d", name, highest,
				verdict.PeakAllocatedBytes)
		}
		if counters == 0 {
			t.Errorf("%s: the steps without events have no counters", name)
		}
		checkEnd(t, p, v)
	}
}

// checkEnd ends a played run. The view must show it as ended, and the version of the ended runs must change.
func checkEnd(t *testing.T, p *played, v *View) {
	t.Helper()
	_, before := v.Running()
	os.Remove(p.path(".marks"))
	os.Remove(p.path(".frames"))
	if err := os.CopyFS(filepath.Join(p.run, "tables"), os.DirFS(p.dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(p.run, "tables", schemas.IngestReportFile),
		filepath.Join(p.run, schemas.IngestReportFile)); err != nil {
		t.Fatal(err)
	}
	p.going = false
	l := now(t, v)
	if !l.Ended || l.Trouble != "" || len(l.Processes) != 1 {
		t.Errorf("after its end: ended %t, %q, %d processes", l.Ended, l.Trouble, len(l.Processes))
	}
	if _, after := v.Running(); after != before+1 {
		t.Errorf("version %d after %d", after, before)
	}
}

// Reading a run changes none of the run's files, not even their times, and adds no file.
func TestReadingLeavesTheRunAlone(t *testing.T) {
	store := t.TempDir()
	p := play(t, "vanilla", store)
	p.grow(t, 1, 1)
	state := func() (out []string) {
		err := filepath.WalkDir(p.run, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := d.Info()
			out = append(out, path+st.ModTime().String()+st.Mode().String())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := state()
	v := p.view(store)
	for range 3 {
		if _, err := page.LiveStreams(now(t, v)); err != nil {
			t.Fatal(err)
		}
	}
	after := state()
	if len(before) != len(after) {
		t.Fatalf("%d files, and %d before", len(after), len(before))
	}
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("%s became %s", before[i], after[i])
		}
	}
	now, err := os.ReadFile(p.path(".marks"))
	if err != nil || !bytes.HasPrefix(now, p.marks) {
		t.Error("the marks are others", err)
	}
}

// If a file is no journal, the view reports this and goes on. If a journal ends in the middle, the view shows it as far
// as it goes.
func TestDamagedJournals(t *testing.T) {
	store := t.TempDir()
	p := play(t, "vanilla", store)
	v := p.view(store)
	for _, test := range []struct {
		marks, frames []byte
		trouble       bool
	}{
		{nil, nil, false},
		{p.marks[:20], p.frames[:3], false},
		{[]byte("no marks at all, but long enough to be read"), nil, true},
		{p.marks, []byte("no frames at all"), true},
	} {
		os.WriteFile(p.path(".marks"), test.marks, 0o600)
		os.WriteFile(p.path(".frames"), test.frames, 0o600)
		if l := now(t, v); (l.Trouble != "") != test.trouble {
			t.Errorf("marks %.20q, frames %.20q: trouble %q", test.marks, test.frames, l.Trouble)
		}
	}
	os.Remove(p.path(".frames"))
	os.Mkdir(p.path(".frames"), 0o755)
	if l := now(t, v); l.Trouble == "" {
		t.Error("a folder in the place of a file is no trouble")
	}
}

// A line keeps the highest and the lowest value, however many values it was made of. In this test it has at most
// mostLine points.
func TestLineKeepsExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(30, 2))
	var l line
	highest, lowest := int64(0), int64(1<<62)
	for i := range int64(300_000) {
		v := 1 + r.Int64N(1<<40)
		if i%5000 == 4999 {
			l.add(page.LivePoint{FromNS: i, TimeNS: i, ToNS: i, Allocated: 1, Low: 1, Counters: true})
			continue
		}
		highest, lowest = max(highest, v), min(lowest, v)
		l.add(page.LivePoint{FromNS: i, TimeNS: i, ToNS: i, Allocated: v, Reserved: v, Low: v})
	}
	top, low, last, counters := int64(0), int64(1<<62), int64(-1), 0
	for _, p := range l.points {
		if p.FromNS <= last || p.ToNS < p.FromNS || p.TimeNS < p.FromNS || p.TimeNS > p.ToNS {
			t.Fatalf("%+v follows %d", p, last)
		}
		last = p.ToNS
		if p.Counters {
			counters++
			continue
		}
		top, low = max(top, p.Allocated), min(low, p.Low)
	}
	if top != highest || low != lowest || len(l.points) > mostLine || counters != 60 {
		t.Errorf("%d to %d of %d to %d, %d points, %d of counters", low, top, lowest, highest, len(l.points), counters)
	}
}
