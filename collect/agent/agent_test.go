package agent

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	if err := Unpack(dir); err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("python/dpsight/*.py")
	folders, _ := filepath.Glob("python/dpsight/*/*.py")
	data, _ := filepath.Glob("python/dpsight/*.json")
	sources = slices.Concat(sources, folders, data)
	if err != nil || len(folders) < 10 {
		t.Fatalf("%d source files, %v", len(sources), err)
	}
	for _, s := range append(sources, "python/sitecustomize.py") {
		want, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, s))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: not unpacked as it is: %v", s, err)
		}
	}
	n := 0
	fs.WalkDir(FS(), ".", func(_ string, e fs.DirEntry, _ error) error {
		if !e.IsDir() {
			n++
		}
		return nil
	})
	if n != len(sources)+1 {
		t.Errorf("%d files embedded, %d sources", n, len(sources)+1)
	}
}

// A recorded script imports the agent that dpsight unpacks, even if another version of the Python package dpsight is
// installed or lies beside the script.
func TestOwnAgentWins(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	dir, installed := t.TempDir(), t.TempDir()
	if err := Unpack(dir); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "python", "dpsight")
	other := filepath.Join(installed, "dpsight")
	if err := os.CopyFS(other, os.DirFS(own)); err != nil {
		t.Fatal(err)
	}
	if !Is(own) || !Is(other) {
		t.Error("the agent does not know itself")
	}
	if err := os.WriteFile(filepath.Join(other, "kinds.py"), []byte("OTHER = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if Is(other) || Is(t.TempDir()) {
		t.Error("another package is taken for the agent")
	}
	const program = "import sys; sys.path.insert(0, %r); import dpsight.kinds; print(dpsight.kinds.__file__)"
	cmd := exec.Command(python, "-c", strings.Replace(program, "%r", "'"+installed+"'", 1))
	cmd.Env = append(os.Environ(), "DPSIGHT_SPOOL="+t.TempDir(),
		"PYTHONPATH="+filepath.Join(dir, "python")+string(os.PathListSeparator)+installed)
	out, err := cmd.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || filepath.Dir(got) != own {
		t.Errorf("%s was imported, not what lies in %s: %v", got, own, err)
	}
}
