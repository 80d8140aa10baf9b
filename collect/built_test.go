package collect

import (
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dpsight/dpsight/collect/agent"
	"github.com/dpsight/dpsight/collect/phantom"
)

// hashOfFiles depends on the names and contents of all its files, and on nothing else. revisionOf reads the commit
// that go build recorded in the program.
func TestBuilt(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	first := fstest.MapFS{"a.py": file("x"), "b/c.py": file("y")}
	want := hashOfFiles(first)
	if hashOfFiles(fstest.MapFS{"b/c.py": file("y"), "a.py": file("x")}) != want {
		t.Error("the same files, another hash")
	}
	for name, other := range map[string]fstest.MapFS{"a name": {"d.py": file("x"), "b/c.py": file("y")},
		"content":  {"a.py": file("x"), "b/c.py": file("z")},
		"one less": {"a.py": file("x")}, "one more": {"a.py": file("x"), "b/c.py": file("y"), "b/d.py": file("")}} {
		if hashOfFiles(other) == want {
			t.Errorf("%s is not in the hash", name)
		}
	}
	b := Built()
	for what, want := range map[string]string{hashOfFiles(agent.FS()): b.Agent,
		hashOfFiles(all(phantom.Files())...): b.Phantom} {
		if hex, ok := strings.CutPrefix(want, "sha256:"); what != want || !ok || len(hex) != 16 {
			t.Errorf("%q, not %q", want, what)
		}
	}
	if b.Agent == b.Phantom {
		t.Error("two sources have one hash")
	}
	if revision, modified := revisionOf(nil); revision != nil || modified != nil {
		t.Error("a build that says nothing has a revision")
	}
	revision, modified := revisionOf([]debug.BuildSetting{{Key: "vcs.revision", Value: "12ab"},
		{Key: "vcs.modified", Value: "true"}})
	if revision == nil || *revision != "12ab" || modified == nil || !*modified {
		t.Errorf("%v, %v", revision, modified)
	}
	if _, modified := revisionOf([]debug.BuildSetting{{Key: "vcs.modified", Value: "false"}}); modified == nil ||
		*modified {
		t.Errorf("%v", modified)
	}
}

// In a wheel's dpsight the linker sets the commit. linkedRevision reads it.
func TestLinkedRevision(t *testing.T) {
	for text, changed := range map[string]bool{"12ab": false, "12ab+modified": true} {
		if revision, modified := linkedRevision(text); *revision != "12ab" || *modified != changed {
			t.Errorf("%s: %s, %v", text, *revision, *modified)
		}
	}
}

// phantom.Files, from which the phantom GPU's digest is computed, has its C files, its Python files and its profiles.
func TestPhantomFiles(t *testing.T) {
	found := map[string]bool{}
	for _, f := range phantom.Files() {
		for _, name := range []string{"csrc/memory.c", "csrc/values/follow.h", "pysrc/phantom_values.py",
			"pysrc/phantom_init.py", "pysrc/phantom_ranks.py", "pysrc/phantom_torch.py",
			"pysrc/phantom_launch.py", "profiles/h200.json"} {
			if _, err := f.ReadFile(name); err == nil {
				found[name] = true
			}
		}
	}
	if len(found) != 8 {
		t.Errorf("%v", found)
	}
}
