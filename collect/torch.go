package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dpsight/dpsight/collect/interpreter"
)

// The oldest version of torch that can be recorded: 2.10 introduced the metadata that joins allocator events to marks.
const oldestMajor, oldestMinor = 2, 10

// probeTime limits the time for probing an interpreter, which takes seconds on a cold file system.
const probeTime = 60 * time.Second

// Install says what an interpreter would import. Probe fills an Install without importing anything, since importing
// torch takes seconds and may fail.
type Install struct {
	Python string // version of Python
	Torch  string // version; "" if absent
	CUDA   string // version of CUDA for which torch was built; "" for none
	Opacus string // version; "" if absent
}

// Probe finds out what an interpreter would import. env is the environment in which it will run.
func Probe(ctx context.Context, python string, env []string) (*Install, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	a, err := interpreter.Ask(ctx, python, env)
	var none *interpreter.Error
	if errors.As(err, &none) {
		return nil, &UsageError{none.Error(), "name another one with --python"}
	}
	if err != nil {
		return nil, err
	}
	in := &Install{Python: a.Version, Opacus: a.Opacus}
	for _, dir := range a.Torch {
		version, cuda, err := interpreter.TorchBuild(dir)
		if err == nil {
			in.Torch, in.CUDA = cmp.Or(version, a.TorchVersion), cuda
			break
		}
	}
	return in, nil
}

// check returns an error of one sentence if this install cannot be used to record experiments. builtin says whether the
// experiment is a built-in one, whose interpreter --python can name.
func (in *Install) check(python string, builtin bool) error {
	other := "give the path of an interpreter with torch instead of python"
	if builtin {
		other = "name an interpreter that has it with --python"
	}
	install := "pip install torch (2.10 or later, a CUDA build), or " + other + "; dpsight doctor shows the one that " +
		"make setup created"
	switch major, minor := torchVersion(in.Torch); {
	case in.Torch == "":
		return &UsageError{fmt.Sprintf("%s (Python %s) has no torch", python, in.Python), install}
	case major < oldestMajor || major == oldestMajor && minor < oldestMinor:
		return &UsageError{fmt.Sprintf("torch %s is too old: dpsight needs %d.%d or later", in.Torch,
			oldestMajor, oldestMinor),
			"upgrade torch; dpsight ingest can read memory snapshots from this torch"}
	case in.CUDA == "":
		return &UsageError{fmt.Sprintf("torch %s of %s is not a CUDA build", in.Torch, python),
			"install a CUDA build of torch: the phantom GPU needs it too, but no real GPU"}
	}
	return nil
}

func torchVersion(v string) (major, minor int) {
	parts := strings.SplitN(v, ".", 3)
	if len(parts) < 2 {
		return 0, 0
	}
	major, _ = strconv.Atoi(parts[0])
	minor, _ = strconv.Atoi(strings.TrimFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' }))
	return major, minor
}
