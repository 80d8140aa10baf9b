package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/dpsight/dpsight/collect/testkit"
)

// memoryWorkflow has the parts that this test needs of the GitHub workflow that users copy.
type memoryWorkflow struct {
	Jobs map[string]struct{ Steps []actionStep }
}

// widthScript is a training script that takes its model's width from the file width.py in its repository.
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

// installed runs the workflow's install step, including go install, without the network, and returns the folder that
// setup-go puts on PATH. git is configured to use this checkout in place of the repository on GitHub. So go install
// builds the module as other users get it: from a zip without the files that Go's rules leave out. Go's cache on disk
// is the proxy for all other modules. pip only checks, with --dry-run, whether the interpreter has the packages that
// the step names.
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
		pip = "#!/bin/sh\n" // the test's interpreter has another torch than the step names
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
		"GOFLAGS=-trimpath -modcacherw"}, // reuses builds; modules can be deleted
		"bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step)
	if out := run(temp, nil, filepath.Join(gopath, "bin", "dpsight"), "--version"); !strings.HasPrefix(out,
		"dpsight ") {
		t.Errorf("what was installed says %q", out)
	}
	return filepath.Join(gopath, "bin")
}

// goInstall is the command with which docs/check.md installs dpsight without a checkout.
const goInstall = "go install github.com/dpsight/dpsight/cmd/dpsight@latest"

// The test runs the workflow that users copy, on a pull request with a planted growth: the check fails, and its
// comment names the category that grew, the module and the line. Without growth the check passes. The test uses the
// dpsight that go install made, and then the dpsight that the action builds from its own sources.
func TestMemoryWorkflow(t *testing.T) {
	testkit.Rest(t)
	interpreter := python(t)
	root := filepath.Join("..", "..")
	var w memoryWorkflow
	example := contents(filepath.Join(root, "examples", "github", "predict.yml"))
	if err := yaml.Unmarshal([]byte(example), &w); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(contents(filepath.Join(root, "docs", "check.md")), goInstall) {
		t.Errorf("docs/check.md does not say %q", goInstall)
	}
	a := readAction(t)
	install, with := "", map[string]string(nil)
	for _, s := range w.Jobs["predict"].Steps {
		if s.Name == "Install" {
			install = s.Run
		}
		if strings.HasPrefix(s.Uses, "dpsight/dpsight@") {
			with = s.With
		}
	}
	if install == "" || with["command"] == "" || with["thresholds"] == "" {
		t.Fatalf("the workflow installs by %q and uses the action with %v", install, with)
	}
	for _, c := range []struct {
		name, width, failed string
		byGo                bool
		says                []string
	}{
		{"grown", "8192", "Verdict", true, []string{"**❌ dpsight check failed: 1 of 1 experiment**",
			"the largest part of it is parameters (+16.02 MiB)", "; its largest place: parameters of 0, train.py:4 in",
			"train \\[predicted, close\\]"}},
		{"not grown", "4096", "", false, []string{"**✅ dpsight check: ", "train \\[predicted, close\\]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRunner(t, map[string]string{"train.py": widthScript, "width.py": "WIDTH = 4096\n"},
				map[string]string{"width.py": "WIDTH = " + c.width + "\n"})
			r.path += ":" + filepath.Dir(interpreter)
			inputs := maps.Clone(with)
			inputs["command"] = "python train.py"
			if c.byGo {
				if dir := installed(t, install+"\n"+goInstall, interpreter); dir != "" {
					inputs["dpsight"] = filepath.Join(dir, "dpsight")
				}
			}
			r.run(t, &a, inputs)
			comments := r.comments()
			if r.failed != c.failed || len(comments) != 1 {
				t.Fatalf("%q failed, and there are %d comments", r.failed, len(comments))
			}
			for _, want := range c.says {
				if !strings.Contains(comments[0], want) {
					t.Errorf("no %q in\n%s", want, comments[0])
				}
			}
		})
	}
}
