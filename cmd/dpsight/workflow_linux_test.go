package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/dpsight/dpsight/collect/testkit"
)

// memoryWorkflow is what a test needs of the workflow that users copy.
type memoryWorkflow struct {
	Env  map[string]string
	Jobs map[string]struct {
		Steps []struct {
			Name, Run string
			Env       map[string]string
			If        string
		}
	}
}

// widthScript is a script whose width is its repository's.
const widthScript = `
import torch
from width import WIDTH
model = torch.nn.Sequential(torch.nn.Linear(512, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    model(torch.randn(64, 512).cuda()).square().mean().backward()
    optimizer.step()
`

// installed runs the workflow's step that installs, without the network, and gives the folder that setup-go puts on
// PATH. To git this checkout is the repository on GitHub, so that what is built is the module as others get it: its
// zip, without what the module's rules leave out. Go's own cache is the proxy of all other modules. pip is asked
// whether the interpreter has what the step names.
func installed(t *testing.T, step, interpreter string) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Log("this is no checkout: the program is not installed by the step, but the test's")
		return ""
	}
	temp := t.TempDir()
	repository, gopath, bin := filepath.Join(temp, "repository"), filepath.Join(temp, "go"), filepath.Join(temp, "bin")
	run := func(dir string, env []string, args ...string) string {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git := []string{"git", "--git-dir=" + repository, "--work-tree=" + root, "-c", "core.bare=false", "-c", "gc.auto=0",
		"-c", "user.name=t", "-c", "user.email=t@example.com"}
	run(temp, nil, "git", "init", "-q", "--bare", repository)
	run(temp, nil, append(git, "add", "-A")...)
	run(temp, nil, append(git, "commit", "-qm", "this checkout")...)
	pip := "#!/bin/sh\nexec '" + interpreter + "' -m pip \"$@\"\n"
	if torch := run(temp, nil, interpreter, "-c",
		"import torch; print(torch.__version__.split('+')[0])"); !strings.Contains(step, "torch=="+torch+" ") {
		pip = "#!/bin/sh\n" // another environment than the step's
	}
	for dir, text := range map[string]string{"bin/pip": pip, "requirements.txt": "# nothing more\n"} {
		path := filepath.Join(temp, dir)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	downloads := filepath.Join(run(temp, nil, "go", "env", "GOMODCACHE"), "cache", "download")
	run(temp, []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "PIP_NO_INDEX=1", "PIP_DRY_RUN=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + repository + ".insteadOf",
		"GIT_CONFIG_VALUE_0=https://github.com/dpsight/dpsight",
		"GOPRIVATE=github.com/dpsight", "GOPROXY=file://" + downloads, "GOSUMDB=off", "GOPATH=" + gopath,
		"GOMODCACHE=" + filepath.Join(gopath, "pkg", "mod"), "GOBIN=", "GOWORK=off",
		"GOFLAGS=-trimpath -modcacherw"}, // what another folder compiled is the same then, and can be removed
		"bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step)
	if out := run(temp, nil, filepath.Join(gopath, "bin", "dpsight"), "--version"); !strings.HasPrefix(out,
		"dpsight ") {
		t.Errorf("what was installed says %q", out)
	}
	return filepath.Join(gopath, "bin")
}

// The steps of the workflow, run by bash as a runner does, over a pull request with a planted growth: the comparison
// fails, and the comment names the category that grew and by how much. Without growth it passes. The program is the one
// that the workflow installs.
func TestMemoryWorkflow(t *testing.T) {
	testkit.Rest(t)
	interpreter := python(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the workflow calls git")
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "github", "predict.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var w memoryWorkflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	steps := w.Jobs["predict"].Steps
	path := filepath.Dir(interpreter) + ":" + os.Getenv("PATH")
	for _, s := range steps {
		if s.Name == "Install" {
			if dir := installed(t, s.Run, interpreter); dir != "" {
				path = dir + ":" + path
			}
		}
	}
	for _, c := range []struct {
		name, width string
		failed      string // the step that fails
		says        []string
	}{
		{"grown", "8192", "Compare", []string{"**dpsight check failed: 1 of 1 experiment**", "the largest part of " +
			"it is parameters (+16.02 MiB)", "train \\[predicted, close\\]",
			"\n\n**Why the peak of branch differs from that of base", "- all runs: predicted (phantom h100, close)\n",
			"belong to module 0 and", "33.03 MiB (34 %) more than that of base"}},
		{"not grown", "4096", "", []string{"**dpsight check: ", "train \\[predicted, close\\]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			repository, temp := t.TempDir(), t.TempDir()
			git := func(args ...string) string {
				cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"},
					args...)...)
				cmd.Dir = repository
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("git %q: %v\n%s", args, err, out)
				}
				return strings.TrimSpace(string(out))
			}
			put := func(name, text string) {
				if err := os.WriteFile(filepath.Join(repository, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			git("init", "-q")
			put("train.py", widthScript)
			put("width.py", "WIDTH = 4096\n")
			git("add", ".")
			git("commit", "-qm", "base")
			base := git("rev-parse", "HEAD")
			put("width.py", "WIDTH = "+c.width+"\n")
			put("notes.txt", "a change\n")
			git("add", ".")
			git("commit", "-qm", "change")
			// What a hosted runner has and this machine need not: gh, which here keeps the comment.
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "gh"), []byte("#!/bin/sh\nfor file; do :; done\ncp \"$file\" "+
				"\"$RUNNER_TEMP/posted.md\"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			environ := append(os.Environ(), "PATH="+bin+":"+path, "RUNNER_TEMP="+temp, "GITHUB_STEP_SUMMARY="+
				filepath.Join(temp, "summary.md"))
			for k, v := range w.Env {
				environ = append(environ, k+"="+v)
			}
			environ = append(environ, "TRAIN=python train.py")
			failed, ran := "", 0
			for _, s := range steps {
				if s.Run == "" || s.Name == "Install" || failed != "" && !strings.HasPrefix(s.If, "always()") {
					continue
				}
				ran++
				env := environ
				for k, v := range s.Env {
					v = strings.NewReplacer("${{ github.event.pull_request.base.sha }}", base, "${{ github.token }}",
						"", "${{ github.event.pull_request.number }}", "7").Replace(v)
					if strings.Contains(v, "${{") {
						t.Fatalf("%s is not known here", v)
					}
					env = append(env, k+"="+v)
				}
				cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
				cmd.Dir, cmd.Env = repository, env
				out, err := cmd.CombinedOutput()
				t.Logf("%s: %v\n%s", s.Name, err, out)
				if err != nil {
					failed = s.Name
				}
			}
			if ran != 4 || failed != c.failed {
				t.Fatalf("%d steps, %q failed", ran, failed)
			}
			posted, err := os.ReadFile(filepath.Join(temp, "posted.md"))
			if err != nil {
				t.Fatal(err)
			}
			summary, err := os.ReadFile(filepath.Join(temp, "summary.md"))
			if err != nil || string(summary) != string(posted) {
				t.Errorf("the summary is not the comment, %v", err)
			}
			for _, want := range c.says {
				if !strings.Contains(string(posted), want) {
					t.Errorf("no %q in\n%s", want, posted)
				}
			}
		})
	}
}
