package collect

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/launch"
)

// gitTime limits the time for reading a repository: a slow network file system must not delay the run.
const gitTime = 3 * time.Second

// sources returns the folders that may contain the experiment's code: the script's folder, then the working folder.
func (p *plan) sources() []string {
	if script, _ := launch.Work(p.argv); script != "" && !p.builtin {
		return []string{filepath.Dir(inFolder(p.dir, script)), p.dir}
	}
	return []string{p.dir}
}

// gitRevision returns the revision of the first folder that is in a repository. gitRevision returns nil if no folder is
// in a repository, or without git.
func gitRevision(ctx context.Context, dirs ...string) *schemas.Git {
	for _, dir := range dirs {
		if git := revisionIn(ctx, dir); git != nil {
			return git
		}
	}
	return nil
}

func revisionIn(ctx context.Context, dir string) *schemas.Git {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir, cmd.WaitDelay = dir, time.Second
		cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0") // git only reads: others may use it
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	head, err := git("-c", "log.showSignature=false", "show", "--no-patch", "--format=%H %cI", "HEAD")
	revision, date, _ := strings.Cut(head, " ")
	if err != nil || revision == "" {
		return nil
	}
	changes, err := git("status", "--porcelain", "--untracked-files=no")
	found := &schemas.Git{Revision: revision, Dirty: err != nil || changes != ""}
	if at, err := time.Parse(time.RFC3339, date); err == nil {
		found.Committed = new(at.UTC())
	}
	return found
}
