package collect

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
)

// notFound says why a command cannot be started.
func notFound(word string, err error) *UsageError {
	hint := "is it installed, and its folder on PATH?"
	switch {
	case word == "":
		return &UsageError{"the command's first word is empty", "as in: dpsight collect -- python train.py"}
	case strings.HasSuffix(word, ".py"):
		hint = "a script goes behind its interpreter, as in: dpsight collect -- python " + word
	case strings.ContainsRune(word, filepath.Separator):
		hint = "the command's first word is a program, by its name or its path"
	}
	return &UsageError{word + ": " + whyNotFound(err), hint}
}

// whyNotFound is what [exec.LookPath] says, without its own words and the path.
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

// scriptOf is the script of a command that is a Python interpreter with its arguments, "" where there is none to see: -c and -m
// have none, nor has a launcher.
func scriptOf(argv []string) string {
	if !pythonName.MatchString(filepath.Base(argv[0])) {
		return ""
	}
	for i := 1; i < len(argv); i++ {
		switch word := argv[i]; {
		case !strings.HasPrefix(word, "-"):
			return word
		case word == "-W", word == "-X", word == "--check-hash-based-pycs":
			i++ // its value
		case strings.HasPrefix(word, "--"), strings.HasPrefix(word, "-W"), strings.HasPrefix(word, "-X"):
		case word == "-", strings.ContainsAny(word, "cm"):
			return ""
		}
	}
	return ""
}

// inFolder is a path as a process in a folder means it.
func inFolder(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
