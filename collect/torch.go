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

// The oldest torch that can be recorded: 2.10 brought the metadata that ties allocator events to marks.
const oldestMajor, oldestMinor = 2, 10

// probeTime bounds the question to an interpreter; a cold file system takes seconds.
const probeTime = 60 * time.Second

// Install is an interpreter and what it would import, found without importing it, since importing torch takes
// seconds and may fail.
type Install struct {
	Python string // version
	Torch  string // version, "" = absent
	CUDA   string // that torch was built for, "" = none
	Opacus string // version, "" = absent
}

// Probe asks an interpreter what it has. env is the environment that it will run in.
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

// check returns an error, one sentence, if this install cannot record experiments. builtin says that the experiment
// is a built-in one, whose interpreter --python names.
func (in *Install) check(python string, builtin bool) error {
	other := "give the path of an interpreter with torch instead of python"
	if builtin {
		other = "name an interpreter that has it with --python"
	}
	install := "pip install torch (2.10 or later, a CUDA build), or " + other + "; dpsight doctor names the one that " +
		"make setup made"
	switch major, minor := torchVersion(in.Torch); {
	case in.Torch == "":
		return &UsageError{fmt.Sprintf("%s (Python %s) has no torch", python, in.Python), install}
	case major < oldestMajor || major == oldestMajor && minor < oldestMinor:
		return &UsageError{fmt.Sprintf("torch %s is too old to be recorded: %d.%d or later is needed", in.Torch,
			oldestMajor, oldestMinor),
			"upgrade torch; memory snapshots made with it can be read by dpsight ingest"}
	case in.CUDA == "":
		return &UsageError{fmt.Sprintf("torch %s of %s is not a CUDA build", in.Torch, python),
			"install a CUDA build of torch: the phantom GPU needs one too, though no GPU"}
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
