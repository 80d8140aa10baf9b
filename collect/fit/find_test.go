package fit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// answer is the result of a played run. fits is "yes" or "no"; it is empty if the run ended for another reason than
// memory.
type answer struct {
	fits, run string
	spare     int64
}

func (a answer) Verdict() (*bool, string) {
	if a.fits == "" {
		return nil, "it fell over"
	}
	return new(a.fits == "yes"), ""
}

func (a answer) Leaves(bytes int64) bool { return a.fits == "yes" && a.spare >= bytes }

// played stands for the runs of a search: it writes the runs' manifests without running Python. A run with a value up
// to most fits, and a run with the value 13 fails.
type played struct {
	t    *testing.T
	most int64
	made []collect.Experiment
}

func (p *played) run(e collect.Experiment) (answer, error) {
	p.made = append(p.made, e)
	value, _ := e.Params["n"].(int64)
	if value == 0 {
		value, _ = e.Params["batch_size"].(int64)
	}
	a, status := answer{fits: "yes", spare: p.most - value}, schemas.StatusOK
	switch {
	case value == 13:
		a, status = answer{}, schemas.StatusFailed
	case value > p.most:
		a, status = answer{fits: "no"}, schemas.StatusOOM
	}
	start := time.Now().UTC()
	m := &schemas.Manifest{RunID: collect.NewRunID(start, e.Name), Name: e.Name, Source: schemas.Predicted,
		Status: status, Start: start, Params: e.Params, Suite: e.Suite, Warnings: []string{}}
	a.run = m.RunID
	dir := filepath.Join(e.Store, m.RunID)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := schemas.WriteManifest(dir, m); err != nil {
		p.t.Fatal(err)
	}
	tables := new(schemas.IngestReport)
	if err := schemas.WriteFile(filepath.Join(dir, schemas.IngestReportFile), tables.Encode); err != nil {
		p.t.Fatal(err)
	}
	return a, nil
}

func (p *played) load(r store.Run) (answer, error) {
	if r.Manifest.Status == schemas.StatusOOM {
		return answer{fits: "no", run: r.Manifest.RunID}, nil
	}
	value, _ := r.Manifest.Params["n"].(float64)
	return answer{"yes", r.Manifest.RunID, p.most - int64(value)}, nil
}

// searching returns a search whose runs p plays.
func searching(p *played, dir, text string, devices ...string) *Search[answer] {
	r, err := ParseRange(text)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &Search[answer]{Range: r, Run: p.run, Load: p.load, Template: collect.Experiment{Store: dir},
		Basis: func(context.Context, *collect.Experiment) (collect.Basis, error) { return collect.Basis{}, nil }}
	for _, d := range append(devices, "h200")[:max(1, len(devices))] {
		m, err := collect.OpenPhantom(d, collect.PhantomOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		s.Machines = append(s.Machines, m)
	}
	return s
}

// find searches all cells, and returns the largest value that fits in each cell, and how many runs of the store the
// search reused.
func find(t *testing.T, s *Search[answer]) (largest []int64, kept int) {
	t.Helper()
	cells, err := s.Cells()
	if err != nil {
		t.Fatal(err)
	}
	for i := range cells {
		best := int64(0)
		if err := s.Find(context.Background(), &cells[i], func(f Found[answer]) {
			if fits, _ := f.Answer.Verdict(); *fits {
				best = max(best, f.Value)
			}
			if f.Kept {
				kept++
			}
		}); err != nil {
			t.Fatal(err)
		}
		largest = append(largest, best)
	}
	return largest, kept
}

// A second search reuses the first one's runs from the store, although the store and the output are beside the script.
// Each search has its own id. A run of a second search for the same value does not count as a repeat of the first
// search's run.
func TestFindKeepsWhatTheStoreHas(t *testing.T) {
	dir := t.TempDir()
	script, out := filepath.Join(dir, "train.py"), filepath.Join(dir, "out")
	if err := os.WriteFile(script, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &played{t: t, most: 37}
	once := func(change func(*Search[answer])) (made, kept int) {
		t.Helper()
		s := searching(p, filepath.Join(dir, "runs"), "n=1..100")
		s.Template.Command, s.Template.Dir, s.Template.Params, s.Ours = []string{"python", "train.py", "{n}"}, dir,
			map[string]any{"rank": "8"}, []string{out}
		change(s)
		before := len(p.made)
		largest, kept := find(t, s)
		if largest[0] != 37 {
			t.Errorf("found %v", largest)
		}
		for _, path := range []string{filepath.Join(out, "fit.json"), filepath.Join(dir, "runs", "fit-n", "fit.json")} {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return len(p.made) - before, kept
	}
	n, kept := once(func(*Search[answer]) {})
	if n == 0 || kept != 0 {
		t.Fatalf("%d runs made, %d kept", n, kept)
	}
	if e := p.made[0]; e.Name != "train-n1" || e.Params["rank"] != "8" || e.Params["n"] != int64(1) ||
		strings.Join(e.Command, " ") != "python train.py 1" {
		t.Errorf("%+v", e)
	}
	if again, kept := once(func(*Search[answer]) {}); again != 0 || kept != n {
		t.Errorf("the second search made %d runs and kept %d of %d", again, kept, n)
	}
	if again, kept := once(func(s *Search[answer]) { s.Fresh = true }); again != n || kept != 0 {
		t.Errorf("with fresh %d runs were made of %d", again, n)
	}
	if a, b, c := p.made[0].Suite, p.made[1].Suite, p.made[n].Suite; a.ID != b.ID || a.ID == c.ID || a.Key != c.Key ||
		a.Key == b.Key {
		t.Errorf("%+v, %+v, and another search's %+v", a, b, c)
	}
	if again, _ := once(func(s *Search[answer]) {
		s.Basis = func(context.Context, *collect.Experiment) (collect.Basis, error) {
			return collect.Basis{Torch: "another"}, nil
		}
	}); again != n {
		t.Errorf("another torch made %d runs of %d", again, n)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(script, later, later); err != nil {
		t.Fatal(err)
	}
	if again, kept := once(func(*Search[answer]) {}); again != n || kept != 0 {
		t.Errorf("a script that changed made %d runs of %d", again, n)
	}
}

// With a margin, the search finds the largest value that fits and the largest that leaves the margin. The search runs
// and reports each value once, and needs no more runs than announced.
func TestFindLeavesAMargin(t *testing.T) {
	for margin, want := range map[int64]int64{1: 136, 2: 135, 10: 127, 36: 101, 37: 0, 90: 0} {
		p := &played{t: t, most: 137}
		s := searching(p, t.TempDir(), "n=101..200")
		s.Template.Command = []string{"python", "train.py", "{n}"}
		s.Margin = func(*collect.Machine) int64 { return margin }
		for _, again := range []bool{false, true} {
			cells, err := s.Cells()
			if err != nil {
				t.Fatal(err)
			}
			told, fits, leaves := map[int64]bool{}, int64(0), int64(0)
			if err := s.Find(context.Background(), &cells[0], func(f Found[answer]) {
				if told[f.Value] || f.Kept != again {
					t.Errorf("margin %d: %d was told of before, or kept is %t", margin, f.Value, f.Kept)
				}
				told[f.Value] = true
				if f.Answer.fits == "yes" {
					fits = max(fits, f.Value)
				}
				if f.Answer.Leaves(margin) {
					leaves = max(leaves, f.Value)
				}
			}); err != nil {
				t.Fatal(err)
			}
			if fits != 137 || leaves != want || len(told) != len(p.made) || len(told) > cells[0].Probes() {
				t.Errorf("margin %d: %d fits, %d leaves it, in %d runs of at most %d, %d made", margin, fits, leaves,
					len(told), cells[0].Probes(), len(p.made))
			}
			if want > 101 && (!told[want+1] || !told[want+2] || !told[want-1]) {
				t.Errorf("margin %d: what is beside %d was not tried", margin, want)
			}
		}
	}
}

// If a run that the search needs fails for another reason than memory, the search ends. The next search makes that run
// again.
func TestFindStops(t *testing.T) {
	p := &played{t: t, most: 100}
	s := searching(p, t.TempDir(), "n=1..13")
	s.Template.Command = []string{"python", "train.py", "{n}"}
	for range 2 {
		cells, err := s.Cells()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Find(context.Background(), &cells[0], func(Found[answer]) {}); err == nil ||
			err.Error() != "n 13 ended for another reason than memory: it fell over" ||
			!(&Trail[answer]{Stopped: err}).Unanswered() {
			t.Errorf("%v", err)
		}
	}
	if len(p.made) != 3 { // the first search ran 1 and 13, and the second only 13
		t.Errorf("%d runs", len(p.made))
	}
	for interrupted, want := range map[error]int{ErrInterrupted: 0, ErrInterruptedAfter: 1} {
		s.Run = func(collect.Experiment) (answer, error) { return answer{}, interrupted }
		cells, _ := s.Cells()
		found := 0
		err := s.Find(context.Background(), &cells[0], func(f Found[answer]) { found += map[bool]int{false: 1}[f.Kept] })
		if !errors.Is(err, ErrInterrupted) || found != want || (&Trail[answer]{Stopped: err}).Unanswered() {
			t.Errorf("%v, and %d values have an answer, want %d", err, found, want)
		}
	}
}

// A search has a cell for each pair of a method and a device. All devices of the first method come first.
func TestCells(t *testing.T) {
	s := searching(&played{t: t}, "", "batch_size=2..4", "h200", "t4")
	s.Given = map[string]string{"method": "vanilla, ghost", "model": "mlp", "preset": "tiny"}
	cells, err := s.Cells()
	if err != nil || len(cells) != 4 {
		t.Fatal(cells, err)
	}
	for i, want := range []string{"vanilla h200", "vanilla t4", "ghost h200", "ghost t4"} {
		if got := cells[i].Method + " " + cells[i].Machine.Profile(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// functorch and ew are dpsgd with an option. A search lists each of them in a cell of its own, under its own name.
func TestCellsOfOneMethodWithOptions(t *testing.T) {
	s := searching(&played{t: t}, "", "batch_size=2..4")
	s.Given = map[string]string{"method": "dpsgd,functorch,ew", "preset": "tiny"}
	cells, err := s.Cells()
	if err != nil || len(cells) != 3 || cells[0].Method != "dpsgd" || cells[1].Method != "functorch" ||
		cells[2].Method != "ew" {
		t.Error(cells, err)
	}
}

// A search that is sure to fail is refused before anything runs, with a hint.
func TestCellsRefuse(t *testing.T) {
	for _, c := range []struct {
		vary, given string // given is method=… options, or a command
		problem     string
		hint        string
	}{
		{"seq_len=4..8", "method=vanilla model=mlp preset=tiny", "--vary seq_len has no effect on this " +
			"experiment (vanilla)", "which options go with which model"},
		{"batch_size=4..8", "method=vanilla preset=tiny batch_size=3", "--batch-size is given", "leave one out"},
		{"batch_size=4..8", "method=ghost,vanilla,ghost preset=tiny", "--method names ghost twice", "leave one out"},
		{"batch_size=4..8", "method=norm_only,norm-only preset=tiny", "--method names norm_only twice",
			"leave one out"},
		{"physical_batch_size=5..7", "method=ghost preset=tiny batch_size=64", "--vary physical_batch_size: no value " +
			"from 5 to 7 is possible: physical_batch_size must be a divisor of batch_size 64, not 5", "possible values"},
		{"physical_batch_size=1..20000", "method=ghost preset=tiny batch_size=64", "--vary physical_batch_size " +
			"reaches 3, and this value is impossible: ", "up to 16384 values"},
		{"n=4..8", "", "the command has no {n}", "python train.py"},
	} {
		s := searching(&played{t: t}, "", c.vary)
		if c.given == "" {
			s.Template.Command = []string{"python", "train.py"}
		} else {
			s.Given = map[string]string{}
			for _, word := range strings.Fields(c.given) {
				name, value, _ := strings.Cut(word, "=")
				s.Given[name] = value
			}
		}
		_, err := s.Cells()
		var usage *collect.UsageError
		if !errors.As(err, &usage) || !strings.HasPrefix(usage.Problem, c.problem) ||
			!strings.Contains(usage.Hint(), c.hint) {
			t.Errorf("%s with %q: %v, %+v", c.vary, c.given, err, usage)
		}
	}
}

// If one option must divide another, a cell has only the values for which this holds, whatever the ends of the range
// are.
func TestCellsOfValuesThatDivide(t *testing.T) {
	for _, c := range []struct {
		vary, given, only string
		top               bool
	}{
		{"physical_batch_size=1..512", "batch_size=512", "[1 2 4 8 16 32 64 128 256 512]", true},
		{"physical_batch_size=3..100", "batch_size=96", "[3 4 6 8 12 16 24 32 48 96]", true},
		{"physical_batch_size=3..50", "batch_size=96", "[3 4 6 8 12 16 24 32 48]", false},
		{"physical_batch_size=1..2", "batch_size=40002", "[]", false},
		{"physical_batch_size=1..2", "batch_size=2", "[]", true},
		{"batch_size=6..20", "physical_batch_size=4", "[8 12 16 20]", false},
		{"batch_size=4..20:4", "physical_batch_size=4", "[]", false}, // every value in the range divides
	} {
		s := searching(&played{t: t}, "", c.vary)
		name, value, _ := strings.Cut(c.given, "=")
		s.Given = map[string]string{"method": "ghost,dpsgd", "preset": "tiny", name: value}
		cells, err := s.Cells()
		if err != nil || len(cells) != 2 {
			t.Fatal(cells, err)
		}
		for _, cell := range cells {
			if got := fmt.Sprint(cell.Values.Only); got != c.only || cell.Values.Top != c.top ||
				(cell.Values.Barred == "") != (c.only == "[]") || cell.Method == "" {
				t.Errorf("%s with %s: %s %s, %q, top %t", c.vary, c.given, cell.Method, got, cell.Values.Barred,
					cell.Values.Top)
			}
		}
	}
}

// A search over a batch size tries only multiples of the given physical batch size.
func TestFindAmongValuesThatDivide(t *testing.T) {
	p := &played{t: t, most: 100}
	s := searching(p, t.TempDir(), "batch_size=10..500")
	s.Given = map[string]string{"method": "ghost", "preset": "tiny", "physical_batch_size": "16"}
	if largest, _ := find(t, s); largest[0] != 96 {
		t.Errorf("found %d", largest)
	}
	for _, e := range p.made {
		if value, _ := e.Params["batch_size"].(int64); value%16 != 0 {
			t.Errorf("asked for %d", value)
		}
	}
}

// A search's progress counts the runs of all cells. The count never decreases, and stays below the announced total.
func TestSearchesSayHowFarTheyAre(t *testing.T) {
	p := &played{t: t, most: 37}
	s := searching(p, filepath.Join(t.TempDir(), "runs"), "n=1..100", "h200", "t4")
	s.Template.Command = []string{"true", "{n}"}
	last, of, told := -1, 0, 0
	s.Plan = func(i, runs int) {
		if i < last || i >= runs || of > 0 && runs != of {
			t.Errorf("run %d of %d after run %d of %d", i, runs, last, of)
		}
		last, of, told = i, runs, told+1
	}
	cells, err := s.Cells()
	if err != nil {
		t.Fatal(err)
	}
	trails, err := s.All(context.Background(), cells, func(*Cell) {}, func(*Trail[answer]) {})
	if err != nil || len(trails) != 2 || of != cells[0].Probes()+cells[1].Probes() || told != 2+len(p.made) {
		t.Errorf("%d trails, told %d times of %d runs, %d were made: %v", len(trails), told, of, len(p.made), err)
	}
}

// A search calls Slow once if its runs are slow, and not if --steps is given already.
func TestSlowRunsAreToldOnce(t *testing.T) {
	for _, c := range []struct {
		took  time.Duration
		steps string
		told  int
	}{{SlowRun, "", 1}, {SlowRun - 1, "", 0}, {SlowRun, "3", 0}} {
		synctest.Test(t, func(t *testing.T) {
			p := &played{t: t, most: 37}
			s := searching(p, t.TempDir(), "n=1..100")
			s.Template.Command, s.Template.Dir, s.Template.Steps = []string{"python", "train.py", "{n}"}, t.TempDir(), c.steps
			s.Run = func(e collect.Experiment) (answer, error) {
				time.Sleep(c.took)
				return p.run(e)
			}
			told := 0
			s.Slow = func(took time.Duration) {
				if told++; took != c.took {
					t.Errorf("%s, not %s", took, c.took)
				}
			}
			if find(t, s); told != c.told {
				t.Errorf("%s with steps %q: told %d times, not %d", c.took, c.steps, told, c.told)
			}
		})
	}
}
