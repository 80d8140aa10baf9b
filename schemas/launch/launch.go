// Package launch analyses commands: which part is a launcher, such as torchrun, or a Python interpreter, and which
// script or module it starts.
package launch

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// modules are the launchers that are Python modules. programs are the launchers that are programs; the value of each
// lists the words that come between the program and its options.
var (
	modules  = []string{"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"}
	programs = map[string]string{"torchrun": "", "deepspeed": "", "accelerate": "launch"}
)

var pythonName = regexp.MustCompile(`^(python|pypy)[0-9.]*$`)

// Base returns the name of a program or a script without its folder, for a path of any operating system.
func Base(word string) string { return path.Base(strings.ReplaceAll(word, `\`, "/")) }

// IsPython reports whether a word is a Python interpreter, by its name.
func IsPython(word string) bool {
	return pythonName.MatchString(strings.TrimSuffix(Base(word), ".exe"))
}

// IsLauncher reports whether a word of a command is a launcher's program, such as torchrun.
func IsLauncher(word string) bool { _, ok := programs[Base(word)]; return ok }

// IsModule reports whether a Python module is a launcher.
func IsModule(name string) bool { return slices.Contains(modules, name) }

// StartsModule reports whether a word is the option by which a launcher starts a module instead of a script. torchrun
// and accelerate have both spellings, deepspeed only the long one.
func StartsModule(word string) bool { return word == "-m" || word == "--module" }

// Behind returns the words behind a launcher: its options, the script and the script's arguments. Behind returns nil if
// the command is no launcher.
func Behind(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	if second, ok := programs[Base(argv[0])]; ok {
		switch {
		case second == "":
			return argv[1:]
		case len(argv) > 1 && argv[1] == second:
			return argv[2:]
		}
		return nil
	}
	if !IsPython(argv[0]) {
		return nil
	}
	switch module, rest := interpreted(argv); {
	case IsModule(module):
		return rest
	case module == "" && len(rest) > 0 && IsLauncher(rest[0]): // for example python /x/bin/torchrun
		return Behind(rest)
	}
	return nil
}

// interpreted returns what an interpreter starts: a module with its arguments, or a script with its arguments.
// interpreted returns nothing for -c.
func interpreted(argv []string) (module string, rest []string) {
	for i := 1; i < len(argv); i++ {
		word := argv[i]
		switch {
		case word == "-":
			return "", nil
		case !strings.HasPrefix(word, "-"):
			return "", argv[i:]
		case word == "--check-hash-based-pycs":
			i++ // skips the option's value
			continue
		case strings.HasPrefix(word, "--"):
			continue
		}
		at := strings.IndexAny(word, "cmWX") // the rest of the word, or else the next word, belongs to this option
		if at < 0 {
			continue
		}
		value := word[at+1:]
		switch {
		case word[at] == 'c':
			return "", nil
		case word[at] == 'm' && value != "":
			return value, argv[i+1:]
		case word[at] == 'm' && i+1 < len(argv):
			return argv[i+1], argv[i+2:]
		case value == "":
			i++
		}
	}
	return "", nil
}

// Started returns the script or the module that a launcher or a Python interpreter starts. Script and module are empty
// if the command shows neither. Since not all options of a launcher are known, Started takes as the script the first
// word after the launcher that ends in .py and is no option. If an earlier option starts a module, later words belong
// to that module.
func Started(argv []string) (script, module string) {
	if len(argv) == 0 {
		return "", ""
	}
	if words := Behind(argv); words != nil || IsLauncher(argv[0]) {
		for i, word := range words {
			switch {
			case StartsModule(word) && i+1 < len(words):
				return "", words[i+1]
			case isScript(word):
				return word, ""
			}
		}
		return "", ""
	}
	if !IsPython(argv[0]) {
		return "", ""
	}
	module, rest := interpreted(argv)
	if module == "" && len(rest) > 0 {
		return rest[0], ""
	}
	return "", module
}

// Work is [Started] for a command that another program may start, such as numactl or uv. Work skips the words before
// the first launcher or interpreter. If one of the skipped words ends in .py, that word is the script.
func Work(argv []string) (script, module string) {
	for i, word := range argv {
		switch {
		case isScript(word):
			return word, ""
		case IsPython(word), IsLauncher(word):
			return Started(argv[i:])
		}
	}
	return "", ""
}

// isScript reports whether a word may be a script. An option that ends in .py, such as --config=a.py, is no script.
func isScript(word string) bool {
	return strings.HasSuffix(word, ".py") && !strings.HasPrefix(word, "-")
}

// Ranks returns how many processes a launcher starts on this machine, or 1 if the command does not show it.
func Ranks(argv []string) int {
	words := Behind(argv)
	for i, word := range words {
		if StartsModule(word) || isScript(word) {
			break // the following arguments are the script's
		}
		name, value, given := strings.Cut(strings.ReplaceAll(word, "-", "_"), "=")
		if !given && i+1 < len(words) {
			value = words[i+1]
		}
		switch name {
		case "__nproc_per_node", "__num_processes", "__num_gpus":
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				return n
			}
		}
	}
	return 1
}
