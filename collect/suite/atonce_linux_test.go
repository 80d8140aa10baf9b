package suite

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas/store"
)

// trials returns how many times a test runs two processes that do the same thing at the same time. rest includes the
// cases that make test leaves out.
func trials(rest bool) int {
	if rest {
		return 50
	}
	return 6
}

// twice resumes a suite in two processes at the same time.
func twice(request []byte) (outputs [2]string, errs [2]error) {
	var both sync.WaitGroup
	for i := range 2 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), suiteVariable+"="+string(request))
		both.Go(func() {
			var b []byte
			b, errs[i] = cmd.CombinedOutput()
			outputs[i] = string(b)
		})
	}
	both.Wait()
	return outputs, errs
}

// If two processes resume a suite that has no run in the store, one of them begins the suite. The other process
// reports that the suite is being made, or finds it complete.
func TestBeginTwiceAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte("name: s\ncommand: ['true']\nmatrix: {n: [1]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range trials(testkit.WithRest()) {
		dir := filepath.Join(t.TempDir(), "st")
		request, err := json.Marshal(suiteRequest{Store: dir, File: file})
		if err != nil {
			t.Fatal(err)
		}
		outputs, errs := twice(request)
		files, _ := os.ReadDir(filepath.Join(dir, "suites"))
		if len(files) != 1 {
			t.Fatalf("two suites began, or locks were left: %v\n%s", files, outputs)
		}
		id := strings.TrimSuffix(files[0].Name(), ".json")
		for i := range 2 {
			if errs[i] != nil && (errs[1-i] != nil || !strings.Contains(outputs[i], "is recording suite "+id)) {
				t.Errorf("%v: %s", errs[i], outputs[i])
			}
		}
		if ids := suiteDocument(t, dir, id).RunIDs(); len(ids) != 1 {
			t.Errorf("the document has runs %v", ids)
		}
		if runs, _, err := store.Open(dir).Runs(); err != nil || len(runs) != 1 {
			t.Errorf("%d runs, %v", len(runs), err)
		}
	}
}

// When two processes resume a suite at once, one of them makes each remaining run, once. The other process reports
// that the suite is being made, or finds it complete.
func TestResumeTwiceAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "s.yaml")
	text := "name: s\ncommand: [sh, -c, 'sleep 0.05']\nmatrix: {n: [1, 2]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := one(t, parse(t, text), dir, nil)
	request, err := json.Marshal(suiteRequest{Store: dir, File: file})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for range trials(testkit.WithRest()) {
		runs, _, err := store.Open(dir).Runs()
		if err != nil || len(runs) != 2 {
			t.Fatalf("%d runs, %v", len(runs), err)
		}
		if err := os.RemoveAll(runs[0].Dir); err != nil {
			t.Fatal(err)
		}
		outputs, errs := twice(request)
		for i := range 2 {
			switch refused := "another dpsight is recording suite " + out.Suite.ID; {
			case errs[i] == nil:
			case errs[1-i] == nil && strings.Contains(outputs[i], refused):
				told++
			default:
				t.Errorf("%v: %s", errs[i], outputs[i])
			}
		}
		doc := suiteDocument(t, dir, out.Suite.ID)
		if ids := doc.RunIDs(); len(ids) != 2 {
			t.Errorf("the document has runs %v", ids)
		}
		if suites, _ := os.ReadDir(filepath.Join(dir, "suites")); len(suites) != 1 {
			t.Errorf("beside the document stand %v", suites)
		}
	}
	if told == 0 {
		t.Error("no two were at work at once")
	}
}
