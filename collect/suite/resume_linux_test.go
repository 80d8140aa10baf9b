package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// one runs a suite. With options it resumes the suite, so only the runs are made that the store lacks.
func one(t *testing.T, s *Suite, dir string, o *ResumeOptions) (*Outcome, *Resumption) {
	t.Helper()
	m := &collect.Machine{}
	var earlier *Resumption
	if o != nil {
		o.Machine = m
		var err error
		if earlier, err = s.Resume(store.Open(dir), *o); err != nil {
			t.Fatal(err)
		}
	}
	out, err := s.Run(t.Context(), Options{Template: collect.Experiment{Store: dir, Machine: m}, Resume: earlier})
	if err != nil {
		t.Fatal(err)
	}
	return out, earlier
}

// suiteDocument reads a suite's document from the store.
func suiteDocument(t *testing.T, dir, id string) *store.Suite {
	t.Helper()
	suites, _, err := store.Open(dir).Suites()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		if s.ID == id {
			return s
		}
	}
	t.Fatalf("no suite %s among %d in the store", id, len(suites))
	return nil
}

func made(out *Outcome) string {
	var names []string
	for _, r := range out.Results {
		names = append(names, fmt.Sprintf("%s/%d", r.Manifest.Name, r.Manifest.Suite.Repetition))
	}
	return strings.Join(names, " ")
}

// flaky is a suite's command that fails if the given folder has a file with the experiment's n as its name.
const flaky = `[sh, -c, 'test ! -e "$0/{n}" || { echo "no luck with {n}" >&2; exit 3; }', %q]`

func TestResumeKnowsExperimentsByContent(t *testing.T) {
	dir, bad := t.TempDir(), t.TempDir()
	command := "command: " + fmt.Sprintf(flaky, bad) + "\n"
	os.WriteFile(filepath.Join(bad, "2"), nil, 0o600)
	first := parse(t, "name: s\n"+command+"matrix: {n: [1, 2, 3]}\n")
	out, _ := one(t, first, dir, nil)
	if made(out) != "n1/0 n2/0 n3/0" || out.Err() == nil || out.Planned != 3 || len(out.Runs) != 3 {
		t.Fatalf("%s, %+v", made(out), out)
	}
	if m := out.Results[1].Manifest; m.Status != schemas.StatusFailed || m.Reason != "no luck with 2" {
		t.Errorf("%s (%s)", m.Status, m.Reason)
	}
	id := out.Suite.ID

	// The suite's file is then reordered, extended and has repeats. Resuming it repeats neither the finished runs nor
	// the failed run.
	second := parse(t, "name: s\n"+command+"repeats: 2\nmatrix: {n: [3, 2, 4]}\n")
	out, earlier := one(t, second, dir, &ResumeOptions{})
	if made(out) != "n4/0 n3/1 n2/1 n4/1" || out.Err() == nil || out.Suite.ID != id || earlier.Suite.ID != id {
		t.Errorf("%s, %+v", made(out), out.Suite)
	}
	doc := suiteDocument(t, dir, id)
	var cells []string
	for _, x := range doc.Experiments {
		cells = append(cells, fmt.Sprintf("%s:%d", x.Name, len(x.RunIDs)))
	}
	if got := strings.Join(cells, " "); got != "n3:2 n2:2 n4:2 n1:1" {
		t.Errorf("the document has %s", got)
	}
	if done, unwell := earlier.Done(second.Experiments[1]); done != 2 || unwell != 2 { // with the one made now
		t.Errorf("n2 was made %d times, %d failed", done, unwell)
	}

	// With RetryFailed, resuming makes only the failed runs again. The new runs supersede the failed ones.
	os.Remove(filepath.Join(bad, "2"))
	out, _ = one(t, second, dir, &ResumeOptions{RetryFailed: true})
	if made(out) != "n2/0 n2/1" || out.Err() != nil {
		t.Errorf("%s, %+v", made(out), out)
	}
	if x := out.Suite.Experiment(second.Experiments[1].Key); len(x.RunIDs) != 2 || len(x.Superseded) != 2 ||
		x.RunIDs[0] != out.Results[0].Manifest.RunID {
		t.Errorf("%+v", x)
	}

	// If all runs have ended well, resuming makes none.
	out, _ = one(t, second, dir, &ResumeOptions{ID: id, RetryFailed: true})
	if made(out) != "" || out.Err() != nil || len(out.Runs) != 6 {
		t.Errorf("%s, %d runs", made(out), len(out.Runs))
	}

	// A run whose folder was removed is made again. If only a part of the suite is resumed, other removed runs are not
	// made.
	os.RemoveAll(filepath.Join(dir, doc.Experiments[0].RunIDs[0]))
	os.RemoveAll(filepath.Join(dir, out.Suite.Experiment(second.Experiments[2].Key).RunIDs[1]))
	part, err := second.Select([]string{"n=4"})
	if err != nil {
		t.Fatal(err)
	}
	out, _ = one(t, part, dir, &ResumeOptions{})
	if made(out) != "n4/1" || out.Err() != nil || out.Planned != 2 || len(out.Suite.Experiments) != 4 ||
		out.Suite.Experiments[0].Name != "n3" {
		t.Errorf("%s, %+v", made(out), out.Suite)
	}
	out, _ = one(t, second, dir, &ResumeOptions{})
	if made(out) != "n3/0" || out.Suite.Experiments[0].RunIDs[0] != out.Results[0].Manifest.RunID {
		t.Errorf("%s", made(out))
	}
}

// A suite that was predicted with another device memory is not resumed, since its runs would not be comparable.
func TestResumeKnowsTheMemory(t *testing.T) {
	s := parse(t, "name: s\ncommand: ['true']\nmatrix: {n: [1]}\n")
	doc, profile := &store.Suite{}, "t4"
	doc.ID = "20260101T000000Z-s-abcdef"
	for given, want := range map[int64]bool{8 << 30: true, 4 << 30: false, 0: false} {
		m, err := collect.OpenPhantom(profile, collect.PhantomOptions{MemoryBytes: given})
		if err != nil {
			t.Fatal(err)
		}
		runs := []store.Run{{Manifest: &schemas.Manifest{Suite: &schemas.SuiteRef{ID: doc.ID},
			Source: schemas.Predicted, Profile: &profile, Phantom: &schemas.Phantom{MemoryBytes: 8 << 30,
				MemoryGiven: true}}}}
		if why := s.fits(doc, runs, m); (why == "") != want {
			t.Errorf("%d bytes: %q", given, why)
		}
	}
}

func TestResumeRefuses(t *testing.T) {
	dir := t.TempDir()
	s := parse(t, "name: s\ncommand: ['true']\nmatrix: {n: [1]}\n")
	missing := filepath.Join(dir, "missing")
	empty, err := s.Resume(store.Open(missing), ResumeOptions{Machine: &collect.Machine{}})
	if err != nil || !empty.Begins {
		t.Fatalf("an empty store: %+v, %v", empty, err)
	}
	empty.Close()
	if _, err := os.Stat(missing); err == nil {
		t.Error("a suite that came to nothing has left its store")
	}
	out, _ := one(t, s, dir, nil)
	half := store.Open(dir).SuiteFile("20260101T000000Z-s-abcdef") + schemas.PartialSuffix
	other := store.Open(dir).SuiteFile("20260101T000000Z-other-abcdef") + schemas.PartialSuffix
	os.WriteFile(half, []byte("{"), 0o600)
	os.WriteFile(other, []byte("{"), 0o600)
	first, err := s.Resume(store.Open(dir), ResumeOptions{Machine: &collect.Machine{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Resume(store.Open(dir), ResumeOptions{Machine: &collect.Machine{}})
	if want := "another dpsight is recording suite " + out.Suite.ID; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("a second one at once: %v", err)
	}
	first.Close()
	_, err1 := os.Stat(half)
	_, err2 := os.Stat(other)
	if err1 == nil || err2 != nil {
		t.Errorf("half-written documents: of this suite %v, of another one %v", err1, err2)
	}
	phantom := &collect.Machine{Predicted: true}
	r, err := s.Resume(store.Open(dir), ResumeOptions{Machine: phantom})
	if err != nil || !r.Begins {
		t.Errorf("a measured suite is not gone on with on the phantom GPU: %+v, %v", r, err)
	}
	r.Close()
	var usage *collect.UsageError
	_, err = s.Resume(store.Open(dir), ResumeOptions{Machine: phantom, ID: out.Suite.ID})
	if !errors.As(err, &usage) ||
		!strings.Contains(err.Error(), "the suite's runs are measured, and the new runs would be predicted") {
		t.Error(err)
	}
	_, err = s.Resume(store.Open(dir), ResumeOptions{Machine: &collect.Machine{}, ID: "nope"})
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "no suite nope in ") ||
		!strings.Contains(usage.Hint(), out.Suite.ID) {
		t.Error(err)
	}
}

// The experiments of a suite get the variables in the suite's environment. A secret among the variables is in no file.
func TestEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("MODE", "around")
	s := parse(t, "name: e\nenvironment: {MODE: inside, MY_TOKEN: hushhushhush}\ncommand: [sh, -c, 'echo \"$MODE "+
		"$MY_TOKEN {n}\"; env | grep -c ^MODE=', --token, '{token}']\n"+
		"defaults: {token: hushhushtoo}\nmatrix: {n: [1]}\n")
	out, _ := one(t, s, dir, nil)
	log, _ := os.ReadFile(filepath.Join(out.Results[0].Dir, collect.StdoutFile))
	if text := string(log); !strings.HasPrefix(text, "inside *") || !strings.HasSuffix(text, " 1\n1\n") ||
		strings.Contains(text, "hush") {
		t.Errorf("it printed %q", text)
	}
	if plan, err := json.Marshal(s.Plan(nil, false)); err != nil || strings.Contains(string(plan), "hushhush") {
		t.Errorf("the plan tells: %s, %v", plan, err)
	}
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), "hushhush") {
			t.Errorf("%s has the secret", path)
		}
		return nil
	})
}

// With several jobs, a suite's runs begin in order, each on a GPU that no other run uses. The test's command fails if
// another experiment uses its GPU.
func TestJobs(t *testing.T) {
	dir, busy := t.TempDir(), t.TempDir()
	s := parse(t, "name: j\nrepeats: 2\ncommand: [sh, -c, 'mkdir \"$BUSY/$GPU\" && sleep 0.3 && rmdir \"$BUSY/$GPU\" "+
		"&& echo $GPU']\nmatrix: {n: [1, 2, 3]}\n")
	gpus := []*collect.Machine{{}, {}, {}}
	var mu sync.Mutex
	running, most := 0, 0
	var begun []string
	out, err := s.Run(t.Context(), Options{
		Template: collect.Experiment{Store: dir}, Jobs: len(gpus),
		split: func(n int) ([]*collect.Machine, error) { return gpus[:n], nil },
		Output: func(_ Task, e *collect.Experiment) {
			gpu := strconv.Itoa(slices.Index(gpus, e.Machine))
			e.Environ = collect.Overlay(e.Environ, map[string]string{"BUSY": busy, "GPU": gpu})
		},
		Begin: func(i, of int, task Task) {
			mu.Lock()
			defer mu.Unlock()
			begun = append(begun, fmt.Sprintf("%d/%d %s/%d", i, of, task.Name, task.Repetition))
			running++
			most = max(most, running)
		},
		End: func(r *collect.Result) error {
			mu.Lock()
			defer mu.Unlock()
			running--
			return nil
		},
	})
	if err != nil || out.Err() != nil || len(out.Results) != 6 || most != 3 {
		t.Errorf("%d runs, at most %d at the same time, %v", len(out.Results), most, err)
	}
	on := map[string]int{}
	for _, r := range out.Results {
		log, err := os.ReadFile(filepath.Join(r.Dir, collect.StdoutFile))
		if err != nil {
			t.Fatal(err)
		}
		on[strings.TrimSpace(string(log))]++
		if m := r.Manifest; m.Status != schemas.StatusOK {
			t.Errorf("%s/%d: %s (%s)", m.Name, m.Suite.Repetition, m.Status, m.Reason)
		}
	}
	if len(on) != len(gpus) || on["0"]+on["1"]+on["2"] != 6 {
		t.Errorf("runs by GPU: %v", on)
	}
	if got := strings.Join(begun, ", "); got != "0/6 n1/0, 1/6 n2/0, 2/6 n3/0, 3/6 n1/1, 4/6 n2/1, 5/6 n3/1" {
		t.Errorf("begun in the order %s", got)
	}
	for _, x := range out.Suite.Experiments {
		for i, id := range x.RunIDs {
			if m, err := schemas.ReadManifest(filepath.Join(dir, id)); err != nil || m.Suite.Repetition != i {
				t.Errorf("%s: run %d is repetition %d, %v", x.Name, i, m.Suite.Repetition, err)
			}
		}
	}

	_, err = s.Run(t.Context(), Options{Template: collect.Experiment{Store: dir, Machine: &collect.Machine{}}, Jobs: 2})
	var usage *collect.UsageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "cannot tell the GPUs apart") {
		t.Error(err)
	}
}

func TestJobsAreInterruptedTogether(t *testing.T) {
	signals := make(chan os.Signal, 1)
	s := parse(t, "name: j\ncommand: [sh, -c, 'sleep 20']\nmatrix: {n: [1, 2, 3, 4]}\n")
	begun := 0
	out, err := s.Run(t.Context(), Options{
		Template: collect.Experiment{Store: t.TempDir(), Signals: signals}, Jobs: 2,
		split: func(n int) ([]*collect.Machine, error) { return []*collect.Machine{{}, {}}, nil },
		Begin: func(int, int, Task) {
			if begun++; begun == 2 {
				signals <- os.Interrupt
			}
		},
	})
	if err != nil || !out.Interrupted || out.Err() == nil || len(out.Results) != 2 || begun != 2 {
		t.Fatalf("%d begun, %+v, %v", begun, out, err)
	}
	for _, r := range out.Results {
		if r.Manifest.Status != schemas.StatusKilled || !r.Manifest.Interrupted {
			t.Errorf("%s: %s", r.Manifest.Name, r.Manifest.Status)
		}
	}
}

// If an experiment ends well although a signal interrupts the suite, its run counts as done, and resuming does not
// repeat it.
func TestResumeKeepsWhatEndedWellThoughInterrupted(t *testing.T) {
	dir, signals := t.TempDir(), make(chan os.Signal, 1)
	ready := filepath.Join(t.TempDir(), "ready")
	s := parse(t, "name: s\ncommand: [sh, -c, 'test -e "+ready+" && exit 0; trap \"exit 0\" INT; touch "+ready+
		"; while :; do sleep 0.05; done']\nmatrix: {n: [1, 2]}\n")
	go func() {
		for _, err := os.Stat(ready); err != nil; _, err = os.Stat(ready) {
			time.Sleep(time.Millisecond)
		}
		signals <- os.Interrupt
	}()
	out, err := s.Run(t.Context(), Options{Template: collect.Experiment{Store: dir, Machine: &collect.Machine{},
		Signals: signals}})
	if err != nil || !out.Interrupted || made(out) != "n1/0" {
		t.Fatalf("%+v, %v", out, err)
	}
	if m := out.Results[0].Manifest; m.Status != schemas.StatusOK || !m.Interrupted {
		t.Fatalf("%s, interrupted %t", m.Status, m.Interrupted)
	}
	if out, _ = one(t, s, dir, &ResumeOptions{}); made(out) != "n2/0" || out.Err() != nil {
		t.Errorf("%s, %+v", made(out), out)
	}
}
