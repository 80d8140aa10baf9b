package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// manyRuns makes a store with enough runs for an index. The runs have almost empty tables.
func manyRuns(t *testing.T) string {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	for i := range LeastIndexed + 20 {
		addRun(t, dir, i, "a")
	}
	return dir
}

// addRun makes a run, or replaces it. addRun makes the run's files so old that the index trusts their times.
func addRun(t *testing.T, dir string, i int, name string) {
	t.Helper()
	id := fmt.Sprintf("run-%04d", i)
	run := filepath.Join(dir, id)
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	m := &schemas.Manifest{RunID: id, Name: name, Status: schemas.StatusOK, Start: time.Unix(int64(i), 0).UTC(),
		Params: map[string]any{"n": float64(i)}, Host: schemas.Host{Name: "of the whole manifest"}}
	if err := schemas.WriteManifest(run, m); err != nil {
		t.Fatal(err)
	}
	for _, table := range []func(string) error{
		func(run string) error { return schemas.Steps.Write(run, nil) },
		func(run string) error { return schemas.Phases.Write(run, nil) },
		func(run string) error { return schemas.Marks.Write(run, nil) },
	} {
		if err := table(run); err != nil {
			t.Fatal(err)
		}
	}
	report := &schemas.IngestReport{RunID: id}
	if err := schemas.WriteFile(filepath.Join(run, schemas.IngestReportFile), report.Encode); err != nil {
		t.Fatal(err)
	}
	age(t, run, time.Duration(i)*time.Second)
}

// age sets the times of a run folder and of its files to the moment that was an hour before now plus less.
func age(t *testing.T, run string, less time.Duration) {
	t.Helper()
	at := time.Now().Add(-time.Hour + less)
	entries, _ := os.ReadDir(run)
	for _, e := range entries {
		if err := os.Chtimes(filepath.Join(run, e.Name()), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(run, at, at); err != nil {
		t.Fatal(err)
	}
}

// named is a Keeper that makes summaries with little more than the run's name.
var named = Keeper{Version: 1, Make: func(t *schemas.Tables, s *schemas.Summary) bool {
	s.Origin = fmt.Appendf(nil, "%q", t.Manifest.Host.Name)
	s.Row, s.Compared = fmt.Appendf(nil, "%q", t.Manifest.Name), fmt.Appendf(nil, "%q", "compared "+t.Manifest.Name)
	return true
}, Pack: func(s *schemas.Summary) (map[KeptKind][]byte, error) {
	return map[KeptKind][]byte{KeptRow: s.Row, KeptCompared: s.Compared}, nil
}}

// answer returns, as text, what a command over many runs reads from a store.
func answer(dir string, indexed bool) (string, error) {
	sel, err := (&Store{dir: dir, indexed: indexed}).All()
	if err != nil {
		return "", err
	}
	lines := make([]string, len(sel.Runs))
	for i, r := range sel.Runs {
		lines[i] = fmt.Sprint(r.ID, " ", r.Manifest.Name, " ", r.Manifest.Params, " ", r.Ingested())
	}
	for _, kind := range []KeptKind{KeptRow, KeptCompared} {
		decoded := sel.Kept(named, kind, func(i int, origin, data []byte) bool {
			lines[i] += fmt.Sprintf(" %s %s", origin, data)
			return true
		})
		for i, ok := range decoded {
			if !ok { // without a stored summary, a command reads the run's tables
				t, err := Load(sel.Runs[i], 0)
				if err != nil {
					return "", err
				}
				s := new(schemas.Summary)
				named.Make(t, s)
				own := s.Row
				if kind == KeptCompared {
					own = s.Compared
				}
				lines[i] += fmt.Sprintf(" %s %s", s.Origin, own)
			}
		}
	}
	return strings.Join(lines, "\n"), nil
}

func mustAnswer(t *testing.T, dir string, indexed bool) string {
	t.Helper()
	text, err := answer(dir, indexed)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// After any additions, removals and changes of runs, the index gives the same list of runs as the run folders.
func TestIndexFollowsTheRuns(t *testing.T) {
	dir := manyRuns(t)
	first := mustAnswer(t, dir, true)
	changes := []struct {
		what string
		make func()
	}{
		{"nothing", func() {}},
		{"a run added", func() { addRun(t, dir, 900, "b") }},
		{"a run removed", func() { os.RemoveAll(filepath.Join(dir, "run-0003")) }},
		{"a run of another name", func() { addRun(t, dir, 5, "c") }},
		{"a run made anew with the same times", func() { addRun(t, dir, 6, "d") }},
		{"a summary that is damaged", func() {
			os.WriteFile(filepath.Join(dir, "run-0008", schemas.SummaryFile), []byte("{"), 0o600)
		}},
		{"no summaries", func() {
			all, _ := filepath.Glob(filepath.Join(dir, "*", schemas.SummaryFile))
			for _, file := range all {
				os.Remove(file)
			}
		}},
	}
	for _, c := range changes {
		c.make()
		for time := range 3 { // the first answer makes the index, the second fixes it, the third reads it
			if got, want := mustAnswer(t, dir, true), mustAnswer(t, dir, false); got != want {
				t.Errorf("after %s, time %d: the index says\n%s\nand the folders\n%s", c.what, time, got, want)
			}
		}
	}
	if first == mustAnswer(t, dir, true) {
		t.Error("nothing that was changed is seen")
	}
	if _, err := os.Stat(filepath.Join(dir, IndexFile)); err != nil {
		t.Errorf("there is no index: %v", err)
	}
}

// If the index is up to date, its contents are read instead of the runs' manifests and summaries.
func TestWarmIndexIsRead(t *testing.T) {
	dir := manyRuns(t)
	for range 2 { // writing a summary changes the run's folder, so the index needs a second time
		mustAnswer(t, dir, true)
		for i := range LeastIndexed + 20 {
			age(t, filepath.Join(dir, fmt.Sprintf("run-%04d", i)), 0)
		}
	}
	mustAnswer(t, dir, true)
	sel, err := OpenIndexed(dir).All()
	if err != nil {
		t.Fatal(err)
	}
	x := openIndex(dir)
	defer x.Close()
	rows := x.read(tableRows)
	for _, r := range sel.Runs {
		if !r.brief || rows[filepath.Base(r.Dir)].stamp != stampedKept(r.stamp, named.Version) {
			t.Fatalf("%s is not read from the index", r.ID)
		}
	}
	in, err := Load(sel.Runs[0], 0)
	if err != nil || in.Manifest.Host.Name == "" {
		t.Errorf("its tables come with a brief manifest (%v)", err)
	}
}

// While the index lacks summaries, Kept reports how many have been made so far. Once the index has all summaries, Kept
// reports nothing.
func TestProgressOfSummaries(t *testing.T) {
	dir := manyRuns(t)
	told := func() (calls, done, of int) {
		sel, err := OpenIndexed(dir).All()
		if err != nil {
			t.Fatal(err)
		}
		k := named
		var mu sync.Mutex
		k.Doing = func(n, all int) {
			mu.Lock()
			defer mu.Unlock()
			calls, done, of = calls+1, max(done, n), all
		}
		sel.Kept(k, KeptRow, func(int, []byte, []byte) bool { return true })
		return calls, done, of
	}
	for range 2 { // writing a summary changes the run's folder, so the index needs a second time
		if calls, done, of := told(); calls < 2 || done != of || of != LeastIndexed+20 {
			t.Errorf("told %d times, at last %d of %d", calls, done, of)
		}
		for i := range LeastIndexed + 20 {
			age(t, filepath.Join(dir, fmt.Sprintf("run-%04d", i)), 0)
		}
	}
	told()
	if calls, _, _ := told(); calls > 0 {
		t.Errorf("told %d times of a warm index", calls)
	}
}

// A command gives the same answer if its index is deleted, cut off, overwritten, or replaced by another file or a
// folder. The answer also stays the same while several commands read and repair the index.
func TestNoDamageToAnIndexChangesAnAnswer(t *testing.T) {
	dir := manyRuns(t)
	want := mustAnswer(t, dir, false)
	path := filepath.Join(dir, IndexFile)
	rnd := rand.New(rand.NewPCG(31, 2))
	spoil := func() {
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			b = []byte("x")
		}
		switch rnd.IntN(6) {
		case 0:
			os.Remove(path)
		case 1:
			os.WriteFile(path, b[:rnd.IntN(len(b))], 0o600)
		case 2:
			for range 200 {
				b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
			}
			os.WriteFile(path, b, 0o600)
		case 3:
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
			os.WriteFile(path, b, 0o600)
		case 4:
			os.WriteFile(path, []byte("no database"), 0o600)
		case 5:
			os.WriteFile(path+"-journal", b, 0o600)
		}
	}
	for i := range 15 {
		if got := mustAnswer(t, dir, true); got != want {
			t.Fatalf("after damage %d the index says\n%s\nnot\n%s", i, got, want)
		}
		spoil()
	}
	var wg sync.WaitGroup
	answers := make([]string, 6)
	for i := range answers {
		wg.Go(func() {
			for range 3 {
				if text, err := answer(dir, true); err != nil || text != want {
					answers[i] = fmt.Sprintf("%v\n%s", err, text)
				}
			}
		})
	}
	for range 30 {
		spoil()
		time.Sleep(5 * time.Millisecond)
	}
	wg.Wait()
	if i := slices.IndexFunc(answers, func(a string) bool { return a != "" }); i >= 0 {
		t.Errorf("while the index was spoilt: %s\nnot\n%s", answers[i], want)
	}
	os.Remove(path)
	os.Remove(path + "-journal")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := mustAnswer(t, dir, true); got != want {
		t.Errorf("with a folder in its place: %s", got)
	}
	kept, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "dpsight", "index", "*.sqlite"))
	if len(kept) != 1 {
		t.Errorf("the cache folder has the indexes %v, of a store that cannot have its own", kept)
	}
}

// A small store gets no index, since reading its run folders takes no longer.
func TestSmallStoresHaveNoIndex(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		addRun(t, dir, i, "a")
	}
	mustAnswer(t, dir, true)
	if _, err := os.Stat(filepath.Join(dir, IndexFile)); err == nil {
		t.Error("there is an index")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", schemas.SummaryFile)); len(left) > 0 {
		t.Errorf("reading has written %v", left)
	}
}
