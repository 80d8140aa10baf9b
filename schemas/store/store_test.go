package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

const wantAll = schemas.WantMemory | schemas.WantTimes | schemas.WantSamples | schemas.WantEvents |
	schemas.WantGradients

var day = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// fill puts runs into a new store. Each spec is "id name suite", and each run begins a minute after the previous one.
func fill(t *testing.T, specs ...string) *Store {
	t.Helper()
	s := Open(t.TempDir())
	for i, spec := range specs {
		f := append(strings.Fields(spec), "", "")
		m := &schemas.Manifest{RunID: f[0], Name: f[1], Status: schemas.StatusOK,
			Start: day.Add(time.Duration(i) * time.Minute)}
		if f[2] != "" {
			m.Suite = &schemas.SuiteRef{ID: f[2]}
		}
		dir := filepath.Join(s.Dir(), f[0])
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := schemas.WriteManifest(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func ids(runs []Run) string {
	var l []string
	for _, r := range runs {
		l = append(l, r.ID)
	}
	return strings.Join(l, " ")
}

func TestResolve(t *testing.T) {
	s := fill(t, "20260101-ghost-a1 ghost", "20260102-ghost-b2 ghost", "20260102-vanilla-c3 vanilla",
		"20260103-x-d4 20260101")
	other := fill(t, "far-1 ghost", "far-2 far")
	for _, c := range []struct{ args, want, problem string }{
		{"20260101-ghost-a1", "20260101-ghost-a1", ""},
		{"ghost", "20260102-ghost-b2", ""},        // the newest run of that name
		{"20260102-v", "20260102-vanilla-c3", ""}, // a prefix of only one id
		{"20260101", "20260103-x-d4", ""},         // a name takes precedence over a prefix of an id
		// each run once, in the order of the names
		{"vanilla ghost vanilla", "20260102-vanilla-c3 20260102-ghost-b2", ""},
		{other.Dir(), "far-1 far-2", ""},
		{filepath.Join(other.Dir(), "far-2") + " vanilla", "far-2 20260102-vanilla-c3", ""},
		{"20260102", "", `"20260102" is the beginning of 2 run ids in ` + s.Dir() + ": 20260102-ghost-b2, " +
			"20260102-vanilla-c3"},
		{"gohst", "", "did you mean ghost?"},
		{"vanila", "", "did you mean vanilla?"},
		{"c3", "", "did you mean 20260102-vanilla-c3?"},
		{"nothing-like-it-at-all", "", `no run "nothing-like-it-at-all" in ` + s.Dir()},
		{t.TempDir(), "", "no runs in"},
		{t.TempDir() + "/absent", "", "/absent: there is no such folder"},
	} {
		sel, err := s.Resolve(strings.Fields(c.args))
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: %v, want %q", c.args, err, c.problem)
			}
			continue
		}
		if err != nil || ids(sel.Runs) != c.want || sel.Chosen != "" {
			t.Errorf("%s: %v, %v; want %s", c.args, sel, err, c.want)
		}
	}
	if sel, err := s.ResolveEach([]string{"vanilla", "ghost", "20260101-ghost-a1"}); err != nil ||
		ids(sel.Runs) != "20260102-vanilla-c3 20260101-ghost-a1 20260102-ghost-b2" || len(sel.Newest) != 0 {
		t.Errorf("each of a name: %+v, %v", sel, err)
	}
}

// If the user names no run, the trials of a search are not selected, unless the store has only trials.
func TestTrialsAreNotTakenByThemselves(t *testing.T) {
	s := fill(t, "r1 ghost", "r2 ghost-n1 fit-n", "r3 ghost-n2 fit-n")
	for _, id := range []string{"r2", "r3"} {
		dir := filepath.Join(s.Dir(), id)
		m, err := schemas.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Suite.Search = true
		if err := schemas.WriteManifest(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	if sel, err := s.Resolve(nil); err != nil || ids(sel.Runs) != "r1" ||
		!strings.HasPrefix(sel.Chosen, "run r1, the newest that is no trial of a search in ") {
		t.Errorf("%+v, %v", sel, err)
	}
	if sel, err := s.Resolve([]string{"ghost-n1"}); err != nil || ids(sel.Runs) != "r2" {
		t.Errorf("by its name: %+v, %v", sel, err)
	}
	if err := os.RemoveAll(filepath.Join(s.Dir(), "r1")); err != nil {
		t.Fatal(err)
	}
	if sel, err := s.Resolve(nil); err != nil || ids(sel.Runs) != "r3" ||
		!strings.HasPrefix(sel.Chosen, "run r3, the newest trial of a search in ") {
		t.Errorf("%+v, %v", sel, err)
	}
}

// A suite may record events in only one repeat of an experiment. The experiment's name then selects this repeat.
func TestARepeatWithEventsStandsForTheOthers(t *testing.T) {
	s := fill(t, "r0 flash other", "r1 ghost suite", "r2 ghost suite", "r3 ghost suite", "r4 vanilla suite",
		"r5 flash suite")
	for _, id := range []string{"r2", "r3", "r5"} {
		dir := filepath.Join(s.Dir(), id)
		m, err := schemas.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.Bare = true
		if err := schemas.WriteManifest(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	sel, err := s.Resolve([]string{"ghost"})
	if err != nil || ids(sel.Runs) != "r1" || len(sel.Newest) != 1 ||
		sel.Newest[0].String() != "3 runs are called ghost: taking the newest that is not bare, r1" {
		t.Errorf("%+v, %v", sel, err)
	}
	// Runs of the same name in another suite may belong to another experiment, so they do not count.
	if sel, err = s.Resolve([]string{"flash"}); err != nil || ids(sel.Runs) != "r5" || sel.Newest[0].Bare {
		t.Errorf("%+v, %v", sel, err)
	}
	if sel, err = s.Resolve([]string{"r3"}); err != nil || ids(sel.Runs) != "r3" || len(sel.Newest) != 0 {
		t.Errorf("by its id: %+v, %v", sel, err)
	}
}

// A note says if a name stands for one of several runs, and if the user named nothing.
func TestWhatIsSaidOfAName(t *testing.T) {
	s := fill(t, "r1 ghost", "r2 ghost", "r3 vanilla")
	sel, err := s.Resolve([]string{"ghost", "vanilla", "r1"})
	if err != nil || len(sel.Newest) != 1 ||
		sel.Newest[0].String() != "2 runs are called ghost: taking the newest, r2" || ids(sel.Runs) != "r2 r3 r1" {
		t.Errorf("%+v, %v", sel, err)
	}
	for id, gpu := range map[string]string{"r1": "NVIDIA H200", "r2": "Tesla T4"} {
		dir := filepath.Join(s.Dir(), id)
		m, err := schemas.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		m.GPUs = []schemas.GPU{{Name: gpu}}
		if err := schemas.WriteManifest(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	sel, err = s.Resolve([]string{"ghost", "ghost"})
	if err != nil || len(sel.Newest) != 1 || sel.Newest[0].String() != "2 runs are called ghost: taking the newest, r2, "+
		"on Tesla T4; others ran on NVIDIA H200" {
		t.Errorf("on two devices: %+v, %v", sel, err)
	}
	var none *NoRunsError
	above := filepath.Dir(s.Dir())
	if _, err := s.Resolve([]string{above}); !errors.As(err, &none) || !errors.Is(err, ErrNoRuns) ||
		len(none.Below) != 1 || none.Below[0] != s.Dir() || none.Absent {
		t.Errorf("the folder above a store: %+v, %v", none, err)
	}
	if _, err := Open(filepath.Join(above, "absent")).All(); !errors.As(err, &none) || !none.Absent ||
		!strings.HasSuffix(err.Error(), "absent: there is no such folder") {
		t.Errorf("no folder: %v", err)
	}
	file := filepath.Join(t.TempDir(), "x.pickle")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var not *NotFoundError
	if _, err := s.Resolve([]string{file}); !errors.As(err, &not) || !not.File {
		t.Errorf("a file: %+v, %v", not, err)
	}
	if _, err := Open(filepath.Join(above, "absent")).Resolve([]string{"a"}); !errors.As(err, &not) || !not.Absent ||
		!strings.HasSuffix(err.Error(), "absent: there is no such folder") {
		t.Errorf("no folder: %v", err)
	}
	torn := fill(t, "r1 a")
	if err := os.WriteFile(filepath.Join(torn.Dir(), "r1", "run.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := torn.Resolve([]string{"a"}); !errors.As(err, &not) ||
		!strings.HasSuffix(err.Error(), ": not all of its run folders can be read (r1)") {
		t.Errorf("a torn manifest: %v", err)
	}
	if sel, err := s.All(); err != nil || ids(sel.Runs) != "r1 r2 r3" || len(sel.Newest) != 0 {
		t.Errorf("%+v, %v", sel, err)
	}
}

func TestNothingNamed(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "absent")).Resolve(nil); !errors.Is(err, ErrNoRuns) {
		t.Errorf("absent store: %v", err)
	}
	s := fill(t, "r1 a s1", "r2 b s1", "r3 c")
	sel, err := s.Resolve(nil)
	if err != nil || ids(sel.Runs) != "r3" || !strings.Contains(sel.Chosen, "run r3") {
		t.Errorf("no suite: %+v, %v", sel, err)
	}
	suite := func(id string, created time.Time, runs ...string) {
		t.Helper()
		err := s.WriteSuite(&Suite{ID: id, Name: "quick", Created: created,
			Baseline:    map[string]any{"method": "vanilla"},
			Experiments: []Experiment{{Key: "k", Name: "n", Params: map[string]any{"method": "ghost"}, RunIDs: runs}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	suite("s1", day, "r2", "r1", "gone")
	if sel, _ = s.Resolve(nil); ids(sel.Runs) != "r3" || sel.Suite != nil {
		t.Errorf("a run after the suite: %+v", sel)
	}
	suite("s2", day.Add(time.Hour), "r2", "r1", "gone")
	sel, err = s.Resolve(nil)
	if err != nil || ids(sel.Runs) != "r2 r1" || sel.Suite.ID != "s2" || sel.Missing[0] != "gone" ||
		!strings.Contains(sel.Chosen, "suite quick (s2), 2 runs") {
		t.Errorf("the newest suite, in its order: %+v, %v", sel, err)
	}
	// The suite's last run belongs to it, although the run began after the suite did.
	s = fill(t, "r1 a s3", "r2 b s3")
	suite("s3", day.Add(time.Second), "r1", "r2")
	if sel, _ = s.Resolve(nil); ids(sel.Runs) != "r1 r2" {
		t.Errorf("runs of the suite: %+v", sel)
	}
	suites, _, err := s.Suites()
	if err != nil || len(suites) != 1 || suites[0].ID != "s3" || suites[0].Baseline["method"] != "vanilla" ||
		ids(sel.Runs) != strings.Join(suites[0].RunIDs(), " ") {
		t.Errorf("%+v, %v", suites, err)
	}
	if err := s.WriteSuite(&Suite{ID: "../up"}); err == nil {
		t.Error("a suite was written outside its folder")
	}
}

func TestDamagedRunsHideNoOther(t *testing.T) {
	s := fill(t, "r1 a", "r2 b")
	for name, text := range map[string]string{"bad": "{", "foreign": `{"schema":"x/1"}`,
		"nameless": `{"schema":"dpsight.run/1"}`} {
		os.MkdirAll(filepath.Join(s.Dir(), name), 0o755)
		if err := os.WriteFile(filepath.Join(s.Dir(), name, schemas.ManifestFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.MkdirAll(filepath.Join(s.Dir(), "no-run"), 0o755)
	os.MkdirAll(filepath.Join(s.Dir(), suitesFolder), 0o755)
	os.WriteFile(filepath.Join(s.Dir(), suitesFolder, "x.json"), []byte("{}"), 0o644)
	runs, damaged, err := s.Runs()
	if err != nil || ids(runs) != "r1 r2" || len(damaged) != 3 {
		t.Errorf("%v, %v, %v", ids(runs), damaged, err)
	}
	if _, bad, err := s.Suites(); err != nil || len(bad) != 1 {
		t.Errorf("suites: %v, %v", bad, err)
	}
	if sel, err := Open(t.TempDir()).Resolve([]string{s.Dir()}); err != nil || len(sel.Runs) != 2 ||
		len(sel.Damaged) != 4 { // the suite's document is damaged too
		t.Errorf("%+v, %v", sel, err)
	}
	if _, err := s.Resolve([]string{filepath.Join(s.Dir(), "bad")}); err == nil ||
		!strings.Contains(err.Error(), "not a JSON document") {
		t.Errorf("a damaged run named: %v", err)
	}
}

// manyEvents returns events. One in thirty of these events is an event of a segment.
func manyEvents() (events []schemas.Event) {
	for i := range int64(100) {
		for k := range int64(30) {
			events = append(events, schemas.Event{Rank: 1, Device: 2, Seq: 30*i + k + 2,
				Action: int32(schemas.ActionAlloc), Size: 7})
		}
		events[len(events)-1].Action, events[len(events)-1].Size = int32(schemas.ActionSegmentFree), i
	}
	return events
}

func TestLoad(t *testing.T) {
	s := fill(t, "r1 a")
	runs, _, _ := s.Runs()
	tables, err := Load(runs[0], wantAll)
	var not *NotIngestedError
	if !errors.As(err, &not) || err.Error() != "run r1 has not been ingested: dpsight ingest "+runs[0].Dir ||
		tables.Manifest == nil {
		t.Fatalf("%+v, %v", tables, err)
	}
	report := &schemas.IngestReport{RunID: "r1", Devices: []schemas.DeviceVerdict{{Events: 2}}}
	if err := schemas.WriteFile(filepath.Join(runs[0].Dir, schemas.IngestReportFile), report.Encode); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(runs[0], schemas.WantTimes); err != nil {
		t.Errorf("no times recorded: %v", err)
	}
	if _, err := Load(runs[0], schemas.WantMemory); err == nil || !strings.Contains(err.Error(), "allocations.parquet") {
		t.Errorf("events without allocations: %v", err)
	}
	events := []schemas.Event{{Seq: 1, Action: int32(schemas.ActionSegmentAlloc)},
		{Seq: 2, Action: int32(schemas.ActionAlloc)}}
	if err := errors.Join(schemas.Allocations.Write(runs[0].Dir, []schemas.Allocation{{AllocID: 1}}),
		schemas.Owners.Write(runs[0].Dir, []schemas.Owner{{AllocID: 1}}),
		schemas.Events.Write(runs[0].Dir, events)); err != nil {
		t.Fatal(err)
	}
	if tables, err = Load(runs[0], wantAll); err != nil || len(tables.Allocations) != 1 ||
		len(tables.Owners) != 1 ||
		len(tables.Events) != 1 {
		t.Errorf("%+v, %v", tables, err)
	}
	if tables, err = Load(runs[0], schemas.WantTimes); err != nil || tables.Allocations != nil {
		t.Errorf("allocations were not asked for: %+v, %v", tables, err)
	}
	if e := tables.Events; e != nil {
		t.Errorf("events were not asked for: %+v", e)
	}
	if err := schemas.Processes.Write(runs[0].Dir, []schemas.Process{{Rank: 0}, {Rank: 1}}); err != nil {
		t.Fatal(err)
	}
	for devices, want := range []int{1: 0, 2: 2} { // with several devices, Load also reads which processes shared a GPU
		if report.Devices = make([]schemas.DeviceVerdict, devices); devices == 0 {
			continue
		}
		report.Devices[0].Events = 2
		if err := schemas.WriteFile(filepath.Join(runs[0].Dir, schemas.IngestReportFile), report.Encode); err != nil {
			t.Fatal(err)
		}
		for _, wanted := range []schemas.Want{schemas.WantTimes, schemas.WantMemory} {
			if tables, err = Load(runs[0], wanted); err != nil || len(tables.Processes) != want {
				t.Errorf("of %d devices: %d processes, %v", devices, len(tables.Processes), err)
			}
		}
	}
	os.WriteFile(filepath.Join(runs[0].Dir, schemas.Events.File()), []byte("PAR1 torn"), 0o644)
	if _, err = Load(runs[0], schemas.WantEvents); err == nil ||
		!strings.Contains(err.Error(), "events.parquet: not a complete Parquet file") {
		t.Errorf("torn events: %v", err)
	}
	if err := schemas.Events.Write(runs[0].Dir, manyEvents()); err != nil {
		t.Fatal(err)
	}
	if tables, err = Load(runs[0], schemas.WantEvents); err != nil || len(tables.Events) != 100 ||
		tables.Events[99] != (schemas.Event{Rank: 1, Device: 2, Seq: 3001, Action: int32(schemas.ActionSegmentFree),
			Size: 99}) {
		t.Errorf("%d events, %v", len(tables.Events), err)
	}
	os.WriteFile(filepath.Join(runs[0].Dir, schemas.Owners.File()), []byte("PAR1 torn"), 0o644)
	if _, err = Load(runs[0], schemas.WantMemory); err == nil ||
		!strings.Contains(err.Error(), "run r1: owners.parquet: ") {
		t.Errorf("torn table: %v", err)
	}
}

// Of the allocator's lists, Load reads only those with which later windows open, and only for a run with several
// windows.
func TestLoadOfWindows(t *testing.T) {
	s := fill(t, "r1 a")
	runs, _, _ := s.Runs()
	dir := runs[0].Dir
	blocks := []schemas.SegmentBlock{{At: schemas.ListWindow, Seq: 7},
		{At: schemas.ListLast, Seq: 9}, {At: schemas.ListOOM, Seq: 8}}
	if err := schemas.Segments.Write(dir, blocks); err != nil {
		t.Fatal(err)
	}
	for windows, want := range map[int64]int{1: 0, 2: 1} {
		report := &schemas.IngestReport{RunID: "r1", Cost: []schemas.InstrumentCost{{}, {Windows: windows}}}
		if err := schemas.WriteFile(filepath.Join(dir, schemas.IngestReportFile), report.Encode); err != nil {
			t.Fatal(err)
		}
		tables, err := Load(runs[0], schemas.WantDetail)
		if err != nil || len(tables.Segments) != want || want > 0 && tables.Segments[0] != blocks[0] {
			t.Errorf("%d windows: %+v, %v", windows, tables.Segments, err)
		}
		if tables, err = Load(runs[0], schemas.WantTimes); err != nil || tables.Segments != nil {
			t.Errorf("lists were not asked for: %+v, %v", tables.Segments, err)
		}
	}
}

// If a store has one suite, its runs come in the order of the suite's plan, even if the suite was resumed several
// times. Other runs come last.
func TestPlanOrder(t *testing.T) {
	s := fill(t, "1-c", "2-a", "3-x", "4-b")
	suite := &Suite{ID: "plan", Experiments: []Experiment{{Key: "a", RunIDs: []string{"2-a"}},
		{Key: "b", RunIDs: []string{"4-b"}}, {Key: "c", RunIDs: []string{"1-c"}}}}
	if err := s.WriteSuite(suite); err != nil {
		t.Fatal(err)
	}
	sel, err := s.All()
	if err != nil || ids(sel.Runs) != "2-a 4-b 1-c 3-x" {
		t.Errorf("%v, %v", sel, err)
	}
}

// The levels of reserved are read from their table. In an older store without this table, they are derived from the
// events.
func TestLoadReserved(t *testing.T) {
	s := fill(t, "r1 a")
	runs, _, _ := s.Runs()
	dir := runs[0].Dir
	report := &schemas.IngestReport{RunID: "r1", Devices: []schemas.DeviceVerdict{{Events: 1, PeakReservedBytes: 30}}}
	events := []schemas.Event{{RunID: "r1", Seq: 1, Action: int32(schemas.ActionSegmentAlloc), Size: 20}}
	if err := errors.Join(schemas.WriteFile(filepath.Join(dir, schemas.IngestReportFile), report.Encode),
		schemas.Events.Write(dir, events)); err != nil {
		t.Fatal(err)
	}
	loaded := func(want schemas.Want) []schemas.ReservedLevel {
		t.Helper()
		tables, err := Load(runs[0], want)
		if err != nil {
			t.Fatal(err)
		}
		return tables.Reserved
	}
	derived := []schemas.ReservedLevel{{Bytes: 10}, {Seq: 1, Bytes: 30}} // derived levels have no run id
	if got := loaded(schemas.WantEvents); !slices.Equal(got, derived) {
		t.Errorf("derived %v, want %v", got, derived)
	}
	written := []schemas.ReservedLevel{{RunID: "r1", Bytes: 11}, {RunID: "r1", Seq: 1, Bytes: 31}}
	if err := schemas.Reserved.Write(dir, written); err != nil {
		t.Fatal(err)
	}
	if got := loaded(schemas.WantEvents); !slices.Equal(got, written) {
		t.Errorf("read %v, want %v", got, written)
	}
	if got := loaded(schemas.WantTimes); got != nil {
		t.Errorf("not asked for: %v", got)
	}
}
