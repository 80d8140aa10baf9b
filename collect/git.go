package collect

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// gitTime bounds the look at a repository: one on a slow network file system must not delay the run.
const gitTime = 3 * time.Second

// gitRevision is the revision of the repository that dir is in; nil if it is in none, or there is no git.
func gitRevision(ctx context.Context, dir string) *schemas.Git {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir, cmd.WaitDelay = dir, time.Second
		cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0") // read only, others may be at work in it
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	revision, err := git("rev-parse", "HEAD")
	if err != nil || revision == "" {
		return nil
	}
	changes, err := git("status", "--porcelain", "--untracked-files=no")
	return &schemas.Git{Revision: revision, Dirty: err != nil || changes != ""}
}
