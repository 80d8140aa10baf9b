package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

// If nothing can be recorded or predicted, the demo is a report on the recorded example. The test uses the real script
// and the real Makefile. Only the build of dpsight is replaced, by the program under test.
func TestDemoThatCannotRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("it draws whole reports: slow under the race detector, which finds nothing there")
	}
	program, err := exec.LookPath("dpsight")
	if err != nil {
		t.Fatal(err)
	}
	build := `[ "$*" = 'build -o dpsight ./cmd/dpsight' ] && cp '` + program + `' dpsight`
	for _, test := range []struct {
		name, says string
		tools      map[string]string // shell scripts that replace commands of the machine
	}{
		{"without Python", "make setup failed, so nothing can be recorded", map[string]string{"go": build,
			"uname": "echo Linux x86_64"}},
		{"on another platform", "recording needs Linux x86-64", map[string]string{"go": build,
			"uname": "echo Darwin arm64"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Part(t, test.name == "on another platform")
			here, root := checkout(t)
			bin := tools(t, test.tools)
			cmd := exec.Command(filepath.Join(bin, "make"), "demo")
			cmd.Dir, cmd.Env = here, []string{"PATH=" + bin, "HOME=" + t.TempDir()}
			out, err := cmd.CombinedOutput()
			if err != nil ||
				!bytes.Contains(out, []byte("demo: "+test.says+"; here is the recorded example instead\n")) {
				t.Fatalf("%v\n%s", err, out)
			}
			if !bytes.Contains(out, []byte("\nOverhead over vanilla\n")) ||
				bytes.Contains(out, []byte("Configuration of all runs")) || bytes.Count(out, []byte("\n")) > 60 {
				t.Errorf("it shows more than a newcomer reads, or less:\n%s", out)
			}
			made, err := filepath.Glob(filepath.Join(here, "runs", "*"))
			if err != nil || len(made) != 1 || filepath.Base(made[0]) != "demo-report" {
				t.Fatalf("it left %q, %v", made, err)
			}
			results, err := os.ReadFile(filepath.Join(made[0], "results.json"))
			if err != nil {
				t.Fatal(err)
			}
			runs, err := filepath.Glob(filepath.Join(root, "examples", "headline", "*", schemas.ManifestFile))
			if err != nil || len(runs) == 0 {
				t.Fatalf("%d runs, %v", len(runs), err)
			}
			for _, manifest := range runs {
				if id := filepath.Base(filepath.Dir(manifest)); !bytes.Contains(results, []byte(id)) {
					t.Errorf("the report lacks the run %s", id)
				}
			}
		})
	}
}

// On a machine without a GPU, the demo's real script and the real Makefile predict a model of 1.3 billion parameters
// on the phantom GPU, say what privacy costs and where the report is, in two minutes on two cores. The test replaces
// two steps: it uses the program under test instead of a build of dpsight, and the tests' own Python environment
// instead of a downloaded one.
func TestDemoOnThePhantom(t *testing.T) {
	testkit.Rest(t)
	if testing.Short() {
		t.Skip("it records three experiments")
	}
	interpreter := python(t)
	program, err := exec.LookPath("dpsight")
	if err != nil {
		t.Fatal(err)
	}
	here, _ := checkout(t)
	environment := `case "$*" in
-m\ venv\ *)
	mkdir -p "$3/bin" &&
	printf '#!/bin/sh\ncase "$*" in -m\\ pip\\ *) exit 0 ;; esac\nexec "` + interpreter + `" "$@"\n' > "$3/bin/python" &&
	chmod 755 "$3/bin/python" ;;
*) exec "` + interpreter + `" "$@" ;;
esac`
	bin := tools(t, map[string]string{"go": `[ "$*" = 'build -o dpsight ./cmd/dpsight' ] && cp '` + program +
		`' dpsight`, "python3": environment})
	cache := t.TempDir()
	if err := os.Mkdir(filepath.Join(cache, "dpsight"), 0o755); err != nil {
		t.Fatal(err)
	}
	if own, err := os.UserCacheDir(); err == nil { // the phantom GPU need not be compiled again
		compiled := filepath.Join(own, "dpsight", "phantom")
		if err := errors.Join(os.MkdirAll(compiled, 0o755), os.Symlink(compiled, filepath.Join(cache, "dpsight",
			"phantom"))); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("make", "demo")
	cmd.Dir = here
	for _, v := range os.Environ() { // use neither the machine's store nor its interpreter
		if !strings.HasPrefix(v, "DPSIGHT_") && !strings.HasPrefix(v, "VIRTUAL_ENV=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+t.TempDir(), "XDG_CACHE_HOME="+cache,
		"CUDA_VISIBLE_DEVICES=")
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("recorded example instead")) ||
		!bytes.Contains(out, []byte("runs/demo-report")) {
		t.Fatalf("%v\n%s", err, out)
	}
	_, said, _ := strings.Cut(string(out), "What does differential privacy cost?")
	said, _, _ = strings.Cut(said, "\nmake[") // a make that runs under another make prints this line
	fits80(t, "the demo", said)
	for _, peak := range []string{"(vanilla) needs 25.0 GiB", "(dpsgd) needs 50.0 GiB", "(ghost) needs 30.0 GiB"} {
		if !strings.Contains(said, peak) {
			t.Errorf("it does not say that %s:\n%s", peak, said)
		}
	}
	if n := strings.Count(said, "\n"); n > 25 {
		t.Errorf("%d lines are more than a newcomer reads:\n%s", n, said)
	}
	// The CPU time of make and all its children: on two cores, two minutes of wall time are at most four of CPU time.
	took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("%s of CPU time in %s", took.Round(time.Second), time.Since(begin).Round(time.Second))
	if took > 2*2*time.Minute {
		t.Errorf("the demo takes %s of CPU time, more than two minutes of two cores", took)
	}
	runs, err := filepath.Glob(filepath.Join(here, "runs", "*", schemas.ManifestFile))
	if err != nil || len(runs) != 3 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	folder := filepath.Join(here, "runs", "demo-report")
	summary, err := os.ReadFile(filepath.Join(folder, "summary.txt"))
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := filepath.Glob(filepath.Join(folder, "figures", "*.png"))
	if err != nil || len(drawn) != 5 || !bytes.Contains(summary, []byte("\nnote: tradeoff is left out: "+
		"no run has both a peak and a step time\n")) {
		t.Errorf("%v, of runs without times it draws %q", err, drawn)
	}
	for _, manifest := range runs {
		m, err := schemas.ReadManifest(filepath.Dir(manifest))
		if err != nil {
			t.Fatal(err)
		}
		if m.Status != schemas.StatusOK || m.Source != schemas.Predicted || len(m.Warnings) > 0 ||
			m.Collector.SealedJournals != 1 || m.Suite == nil || m.Suite.Name != "demo" {
			t.Errorf("%s: %s (%s), %s, warnings %q, %d journals", m.Name, m.Status, m.Reason, m.Source, m.Warnings,
				m.Collector.SealedJournals)
		}
		if !bytes.Contains(summary, []byte(m.Name)) {
			t.Errorf("the report lacks %s", m.Name)
		}
	}
}

// checkout makes a folder with the files of the repository that the demo needs. root is the repository's own folder.
func checkout(t *testing.T) (folder, root string) {
	t.Helper()
	folder = t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Makefile", "scripts", "requirements", "examples"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder, root
}

// tools makes a folder for PATH with the commands that make and the scripts call. own has shell scripts that replace
// commands of the machine.
func tools(t *testing.T, own map[string]string) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"bash", "sh", "make", "cat", "cut", "sha256sum", "mkdir", "flock", "basename",
		"dirname", "rm", "touch", "cp"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("the demo calls %s: %v", name, err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, command := range own {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+command+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// The demo's text must follow from the demo's runs. TestDemoSays uses the runs of the recorded example
// examples/headline.
func TestDemoSays(t *testing.T) {
	const store = "../../examples/headline"
	var warned, said bytes.Buffer
	s := &streams{out: &said, err: &warned}
	runs, err := s.source(store).Select([]string{"vanilla", "dpsgd", "ghost"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := runs.Model("")
	if err != nil {
		t.Fatal(err)
	}
	if err := report.WriteDemo(&said, m.Study, "runs", "runs/demo-report"); err != nil {
		t.Fatal(err)
	}
	const want = `
Plain training (vanilla) needs 59.3 GiB at its peak: 42.2 GiB of activations,
  8.7 GiB of optimizer state, 4.4 GiB of parameters and 3.9 GiB of activation
  gradients.
DP-SGD as Opacus does it (dpsgd) needs 63.7 GiB at its peak, 1.07 times as much.
  It adds 4.4 GiB of gradients.
DP-SGD by Opacus' ghost clipping (ghost) needs 65.8 GiB at its peak, 1.11 times
  as much. It adds 4.4 GiB of gradients and 4.0 GiB of clip temporaries, and
  holds less: 1.8 GiB of activation gradients.

The report lies in runs/demo-report: index.html is the page,
  figures/breakdown.png shows these peaks.
Go on with
  dpsight breakdown dpsgd          # what holds its peak, by category
  dpsight explain vanilla dpsgd    # why they differ, layer by layer
  dpsight predict python train.py  # what your script needs
`
	if said.String() != want {
		t.Errorf("it says\n%s\nwant\n%s", said.String(), want)
	}
	plan, err := suite.Demo()
	if err != nil {
		t.Fatal(err)
	}
	opening := report.DemoOpening("NVIDIA H200", plan.Tasks()[0].Params)
	how := "(batch 4, sequence 512, fp32, AdamW)"
	text := strings.Join(strings.Fields(help("demo")), " ")
	if !strings.Contains(strings.ReplaceAll(opening, "\n", " "), how) || !strings.Contains(text, how) {
		t.Errorf("%s: not in the help or in\n%s", how, opening)
	}
	fits80(t, "what it says", said.String()+opening+"\n"+report.DemoOnGPU("device: NVIDIA H200"))
}
