package collect

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// If a shell script starts Python, the manifest lists the files of the Python script and of the modules that it
// imports, with a digest. Editing the script or a module changes the digest.
func TestManifestHasTheCode(t *testing.T) {
	python := testkit.Python(t)
	dir, before := t.TempDir(), time.Now().Add(-time.Minute)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, before, before); err != nil {
			t.Fatal(err)
		}
	}
	train := "import torch, layers\nmodel = layers.model()\nmodel(torch.ones(1, 4)).sum().backward()\n"
	layers := "import torch\ndef model(): return torch.nn.Linear(4, 4)\n"
	digest := func(train, layers string) string {
		t.Helper()
		write("train.py", train)
		write("layers.py", layers)
		e := experiment(t, "exec "+python+" train.py")
		e.Dir, e.Environ = dir, append(os.Environ(), "DPSIGHT_ALLOW_CPU=1", "OMP_NUM_THREADS=1")
		code := run(t, e).Manifest.Code
		if code == nil || code.Digest == nil || len(code.Files) != 2 || code.Files[0].Module != schemas.MainModule ||
			code.Files[0].File != "train.py" || code.Files[1].File != "layers.py" {
			t.Fatalf("%+v", code)
		}
		return *code.Digest
	}
	var seen []string
	edits := [][2]string{{train, layers}, {train, layers + "pass\n"}}
	if testkit.WithRest() {
		edits = append(edits, [2]string{train + "pass\n", layers})
	}
	for _, e := range edits {
		d := digest(e[0], e[1])
		if slices.Contains(seen, d) || !strings.HasPrefix(d, "sha256:") {
			t.Errorf("%s after %q", d, seen)
		}
		seen = append(seen, d)
	}
	if testkit.WithRest() {
		if d := digest(train, layers); d != seen[0] {
			t.Errorf("%s for equal code, which gave %s", d, seen[0])
		}
	}
}

// The recorded revision belongs to the script's repository, whatever folder the command was started in.
func TestRevisionIsOfTheScript(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("git is needed: the tests of revisions make repositories")
	}
	commit := func(text string) string {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"init", "-q"}, {"add", "."},
			{"-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", text}} {
			cmd := exec.Command(git, args...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		return dir
	}
	script, elsewhere := commit("one"), commit("two")
	for what, p := range map[string]*plan{
		"a path":           {argv: []string{"python", filepath.Join(script, "train.py")}, dir: elsewhere},
		"behind torchrun":  {argv: []string{"torchrun", filepath.Join(script, "train.py")}, dir: t.TempDir()},
		"a folder":         {argv: []string{"bash", "run.sh"}, dir: script},
		"in no repository": {argv: []string{"python", filepath.Join(t.TempDir(), "train.py")}, dir: script},
	} {
		got, want := gitRevision(t.Context(), p.sources()...), gitRevision(t.Context(), script)
		if got == nil || want == nil || got.Revision != want.Revision || got.Dirty {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
}
