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
	case isLauncher(word):
		hint = launcherHint(word)
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
// have none. Behind a launcher, whose options cannot all be known, it is the first word that ends in .py, if the launcher is not told
// before to start a module: what ends in .py behind that is the module's.
func scriptOf(argv []string) string {
	for _, word := range launched(argv) {
		if startsModule(word) {
			return ""
		}
		if strings.HasSuffix(word, ".py") && !strings.HasPrefix(word, "-") {
			return word
		}
	}
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

// ScriptOf is the script of a command, "" where none can be seen.
func ScriptOf(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return scriptOf(argv)
}

// inFolder is a path as a process in a folder means it.
func inFolder(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
