package suite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/schemas"
)

// fakePython writes a script that answers dpsight's probe as an interpreter with torch does. Experiments of the method
// ghost fail with this script.
func fakePython(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "torch"), 0o755)
	os.WriteFile(filepath.Join(dir, "torch/version.py"), []byte("__version__ = '2.11.0'\ncuda = '13.0'\n"), 0o600)
	path := filepath.Join(dir, "python")
	script := `#!/bin/sh
case "$*" in
-c*) echo 'dpsight-probe:{"python": "3.11.9", "torch_version": "", "opacus": "1.6.0",' \
  '"torch": ["` + dir + `/torch"]}' ;;
*"--method ghost"*) echo "ghost is broken" >&2; exit 1 ;;
*) echo "running $*" ;;
esac
`
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const threeMethods = `
name: three
baseline: {method: vanilla}
defaults: {preset: tiny}
experiments: [{method: vanilla}, {method: ghost}, {method: dpsgd, bare: true}, {method: vanilla}]
`

func TestRunGoesOnAfterAFailure(t *testing.T) {
	s, err := Parse("three.yaml", []byte(threeMethods))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var order []string
	var written []int // at the end of each run, the number of runs in the suite's document
	out, err := s.Run(t.Context(), Options{
		Template: collect.Experiment{Store: dir, Python: fakePython(t), Machine: &collect.Machine{}},
		Begin:    func(i, of int, x Task) { order = append(order, x.Name) },
		End: func(r *collect.Result) error {
			written = append(written, len(suiteDocument(t, dir, r.Manifest.Suite.ID).RunIDs()))
			return nil
		},
	})
	if err != nil || out.Err() == nil || out.Interrupted || len(out.Failures) > 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := strings.Join(order, " "); got != "vanilla ghost dpsgd-bare vanilla" {
		t.Errorf("order %s", got)
	}
	if len(written) != 4 || written[0] != 1 || written[3] != 4 {
		t.Errorf("runs in the document after each run: %v", written)
	}
	for i, want := range []string{schemas.StatusOK, schemas.StatusFailed, schemas.StatusOK, schemas.StatusOK} {
		m := out.Results[i].Manifest
		if m.Status != want || m.Suite.Name != "three" || m.Suite.Key != s.Tasks()[i].Key || m.Bare != (i == 2) {
			t.Errorf("run %d: %s, %+v, bare %t", i, m.Status, m.Suite, m.Bare)
		}
	}
	if out.Results[3].Manifest.Suite.Repetition != 1 || out.Results[1].Manifest.Reason != "ghost is broken" {
		t.Errorf("%+v, %q", out.Results[3].Manifest.Suite, out.Results[1].Manifest.Reason)
	}
	doc := out.Suite.Experiments
	if len(doc) != 3 || len(doc[0].RunIDs) != 2 || doc[2].Params["bare"] != true {
		t.Errorf("%+v", doc)
	}
	log, _ := os.ReadFile(filepath.Join(out.Results[0].Dir, collect.StdoutFile))
	if !strings.Contains(string(log), "-m dpsight_experiments --method vanilla") ||
		!strings.Contains(string(log), "--device cuda") {
		t.Errorf("it ran %q", log)
	}
}

func TestRunStopsWhenInterrupted(t *testing.T) {
	s, err := Parse("three.yaml", []byte(threeMethods))
	if err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	out, err := s.Run(t.Context(), Options{
		Template: collect.Experiment{Store: t.TempDir(), Python: fakePython(t), Machine: &collect.Machine{},
			Signals: signals},
		Begin: func(i, of int, x Task) {
			if i == 1 {
				signals <- syscall.SIGINT
			}
		},
	})
	if err != nil || !out.Interrupted || len(out.Results) != 2 || out.Err() == nil {
		t.Errorf("%d results, interrupted %t, %v", len(out.Results), out.Interrupted, err)
	}
}

func TestRunWithoutPython(t *testing.T) {
	s, err := Parse("three.yaml", []byte(threeMethods))
	if err != nil {
		t.Fatal(err)
	}
	begun, dir := 0, t.TempDir()
	_, err = s.Run(t.Context(), Options{
		Template: collect.Experiment{Store: dir, Python: "/no/such/python", Machine: &collect.Machine{}},
		Begin:    func(int, int, Task) { begun++ },
	})
	var usage *collect.UsageError
	if !errors.As(err, &usage) || begun != 1 {
		t.Errorf("%v after %d experiments were begun", err, begun)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
}
