package collect

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/launch"
)

// pythonVariable is the variable that names the interpreter of the built-in experiments.
const pythonVariable = "DPSIGHT_PYTHON"

// chosenByCommand marks an interpreter that a user's own command starts.
const chosenByCommand = "command"

// BuiltinPython returns the interpreter of the built-in experiments. BuiltinPython takes the first of these that
// exists: override (--python), $DPSIGHT_PYTHON, the active virtual environment's, the one whose pip installed dpsight,
// the one that make setup created, python3. If an interpreter that the user named cannot run, BuiltinPython returns an
// error, since the next would have another torch.
func BuiltinPython(override string) (*schemas.Interpreter, error) {
	if override != "" {
		return explicitPython(override, "--python")
	}
	if p := os.Getenv(pythonVariable); p != "" {
		return explicitPython(p, "$"+pythonVariable)
	}
	for _, variable := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if dir := os.Getenv(variable); dir != "" {
			if p, err := exec.LookPath(filepath.Join(dir, "bin", "python")); err == nil {
				return &schemas.Interpreter{Path: p, Chosen: "virtual environment"}, nil
			}
		}
	}
	if program, err := os.Executable(); err == nil {
		if p := pythonBeside(program); p != "" {
			return &schemas.Interpreter{Path: p, Chosen: "installed with"}, nil
		}
	}
	if p := setupPython(); p != "" {
		return &schemas.Interpreter{Path: p, Chosen: "make setup"}, nil
	}
	for _, name := range []string{"python3", "python"} {
		if p, err := exec.LookPath(name); err == nil {
			return &schemas.Interpreter{Path: absolute(p), Chosen: "PATH"}, nil
		}
	}
	return nil, &UsageError{"no Python was found", "install Python 3.10 or later, or name one with --python"}
}

func explicitPython(path, how string) (*schemas.Interpreter, error) {
	p, err := exec.LookPath(path)
	if err != nil {
		return nil, &UsageError{fmt.Sprintf("%s: %s cannot be run as a program", how, path),
			"give the path of a Python interpreter"}
	}
	return &schemas.Interpreter{Path: absolute(p), Chosen: how}, nil
}

// pythonBeside returns the interpreter with which pip installed a program, or "" if pip did not install it.
func pythonBeside(program string) string {
	folder := filepath.Dir(program)
	packages, err := filepath.Glob(filepath.Join(filepath.Dir(folder), "lib", "python*", "*-packages", "dpsight"))
	if err != nil || len(packages) == 0 {
		return ""
	}
	p, err := exec.LookPath(filepath.Join(folder, "python3"))
	if err != nil {
		return ""
	}
	return p
}

// setupPython returns the interpreter whose path make setup wrote into the user's cache, or "".
func setupPython() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	b, err := os.ReadFile(filepath.Join(cache, "dpsight", "python"))
	if err != nil {
		return ""
	}
	p, err := exec.LookPath(strings.TrimSpace(string(b)))
	if err != nil {
		return ""
	}
	return p
}

// commandPython returns the interpreter of a user's command: the command itself, the interpreter of a script such as
// torchrun, or one that a prefix such as numactl or nohup starts. commandPython returns nil if it cannot tell which
// interpreter runs, as for a shell script.
func commandPython(argv []string) *schemas.Interpreter {
	found := func(path string) *schemas.Interpreter {
		return &schemas.Interpreter{Path: absolute(path), Chosen: chosenByCommand}
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil
	}
	if launch.IsPython(argv[0]) {
		return found(path)
	}
	if p := shebangPython(path); p != "" {
		return found(p)
	}
	for _, arg := range argv[1:] {
		if launch.IsPython(arg) {
			if p, err := exec.LookPath(arg); err == nil {
				return found(p)
			}
		}
	}
	return nil
}

// longShebang matches the beginning of a script whose interpreter has a path that is too long, or has spaces, for a
// shebang.
var longShebang = regexp.MustCompile(`^'''exec' "?([^" ]+|[^"]+)"? "\$0"`)

func shebangPython(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 4096)
	line, err := r.ReadString('\n')
	text, ok := strings.CutPrefix(line, "#!")
	if err != nil || !ok {
		return ""
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "sh" {
		line, _ = r.ReadString('\n')
		if m := longShebang.FindStringSubmatch(line); m != nil && launch.IsPython(m[1]) {
			return m[1]
		}
		return ""
	}
	if filepath.Base(words[0]) == "env" {
		words = words[1:]
		for len(words) > 0 && (strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=")) {
			words = words[1:]
		}
	}
	if len(words) == 0 || !launch.IsPython(words[0]) {
		return ""
	}
	p, err := exec.LookPath(words[0])
	if err != nil {
		return ""
	}
	return p
}

// absolute makes a path absolute but keeps links: a virtual environment's interpreter is a link.
func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}
