package collect

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// gitRevision returns the commit of a script's repository, the time of the commit, and whether files have changed
// since.
func TestRevisionOfARepository(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_COMMITTER_DATE=2026-03-01T12:00:00+02:00",
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet")
	if g := gitRevision(t.Context(), dir); g != nil {
		t.Errorf("a repository without commits has a revision: %+v", g)
	}
	script := filepath.Join(dir, "train.py")
	for _, text := range []string{"a", "b"} {
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if text == "a" {
			git("add", ".")
			git("commit", "--quiet", "-m", "a subject\n\nand a body")
		}
		g := gitRevision(t.Context(), t.TempDir(), dir)
		if g == nil || len(g.Revision) != 40 || g.Dirty != (text == "b") || g.Committed == nil ||
			!g.Committed.Equal(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: %+v", text, g)
		}
	}
}
