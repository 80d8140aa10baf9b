package collect

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/dpsight/dpsight/schemas/launch"
)

// notFound says why a command cannot be started.
func notFound(word string, err error) *UsageError {
	hint := "install the program, or add its folder to PATH"
	switch {
	case word == "":
		return &UsageError{"the command's first word is empty", "as in: python train.py"}
	case launch.IsLauncher(word) && word == launch.Base(word):
		hint = launcherHint(word)
	case strings.HasSuffix(word, ".py"):
		hint = "write the interpreter before the script, as in: python " + word
	case strings.ContainsRune(word, filepath.Separator):
		hint = "the command's first word must be a program's name or path"
	}
	return &UsageError{word + ": " + whyNotFound(err), hint}
}

// whyNotFound returns the reason from an error of [exec.LookPath], without the path.
func whyNotFound(err error) string {
	if errors.Is(err, exec.ErrNotFound) {
		return "no such command"
	}
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		err = lookup.Err
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}

// inFolder returns a path as a process with this working folder would resolve it.
func inFolder(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
