package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/dpsight/dpsight/collect/agent"
	"github.com/dpsight/dpsight/collect/interpreter"
	"github.com/dpsight/dpsight/collect/nvml"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/schemas"
)

// A Check is the result for one thing that recording needs, or that improves it.
type Check schemas.DoctorCheck

// A Diagnosis is what a machine can record.
type Diagnosis struct {
	Checks   []Check
	Features []schemas.TorchFeature // features of the interpreter's torch; nil if none could be tried
}

// Document returns the diagnosis in its printed form.
func (d Diagnosis) Document() schemas.Doctor {
	doc := schemas.Doctor{Schema: schemas.DoctorSchema, Features: append([]schemas.TorchFeature{}, d.Features...)}
	for _, c := range d.Checks {
		doc.Checks = append(doc.Checks, schemas.DoctorCheck(c))
	}
	return doc
}

// Doctor checks what recording needs on this machine. python is as in --python, store as in --store. Doctor changes
// nothing except the phantom GPU's cache.
func Doctor(ctx context.Context, python, store string) Diagnosis {
	platform := Check{Name: "platform", OK: runtime.GOOS == "linux", Needed: true, Detail: runtime.GOOS + "/" +
		runtime.GOARCH}
	if !platform.OK {
		platform.Detail += ": dpsight records experiments only on Linux"
		platform.Hint = containerHint
	}
	checks := []Check{platform}
	path, found := checkPython(python)
	checks = append(checks, found)
	torch := Check{Name: "torch", Needed: true, Detail: noPython, Hint: found.Hint}
	opacus := Check{Name: "opacus", Detail: noPython, Hint: "the built-in DP experiments need opacus; your own scripts " +
		"may not"}
	if path != "" {
		torch, opacus = checkTorch(ctx, path)
	}
	own := checkAgent(ctx, path)
	features, tried := checkFeatures(ctx, path, torch.OK)
	gpu := checkGPU()
	fake, library := checkPhantom(ctx, path, torch.OK)
	// Either a GPU or a phantom GPU is enough.
	gpu.Needed, fake.Needed = !fake.OK, !gpu.OK
	compiler := checkCompiler(ctx, library)
	checks = append(checks, torch, tried, own, opacus, gpu, compiler, fake, checkStore(store), checkCache())
	return Diagnosis{checks, features}
}

func checkPython(override string) (string, Check) {
	c := Check{Name: "python", Needed: true}
	i, err := BuiltinPython(override)
	if err != nil {
		c.fail(err)
		return "", c
	}
	c.OK, c.Detail = true, fmt.Sprintf("%s (%s)", i.Path, i.Chosen)
	return i.Path, c
}

func (c *Check) fail(err error) {
	c.Detail = firstLine(err.Error())
	var usage *UsageError
	if errors.As(err, &usage) {
		c.Hint = usage.Hint()
	}
}

// The detail of the checks that need an interpreter.
const noPython = "no usable Python was found"

func checkTorch(ctx context.Context, python string) (torch, opacus Check) {
	torch = Check{Name: "torch", Needed: true}
	opacus = Check{Name: "opacus", Hint: "pip install opacus: the built-in DP experiments need it; your own " +
		"scripts may not"}
	install, err := Probe(ctx, python, os.Environ())
	if err != nil {
		torch.fail(err)
		opacus.Detail = torch.Detail
		return torch, opacus
	}
	if err := install.check(python, true); err != nil {
		torch.fail(err)
	} else {
		torch.OK, torch.Detail = true, fmt.Sprintf("%s, for CUDA %s, Python %s", install.Torch, install.CUDA,
			install.Python)
	}
	if install.Opacus == "" {
		opacus.Detail = python + " has no opacus"
	} else {
		opacus.OK, opacus.Detail, opacus.Hint = true, install.Opacus, ""
	}
	return torch, opacus
}

// CheckPrivate returns an error if the built-in private experiments cannot be recorded with an interpreter. If python
// is "", it checks the interpreter that the built-in experiments would use.
func CheckPrivate(ctx context.Context, python string) error {
	chosen, err := BuiltinPython(python)
	if err != nil {
		return err
	}
	install, err := Probe(ctx, chosen.Path, os.Environ())
	if err != nil {
		return err
	}
	if err := install.check(chosen.Path, true); err != nil {
		return err
	}
	if install.Opacus == "" {
		return &UsageError{fmt.Sprintf("%s (Python %s) has no opacus", chosen.Path, install.Python),
			"pip install opacus, or name an interpreter that has it with --python; dpsight doctor shows the one that make " +
				"setup created"}
	}
	return nil
}

// checkFeatures tries the private features of torch that the agent uses.
func checkFeatures(ctx context.Context, python string, torch bool) ([]schemas.TorchFeature, Check) {
	c := Check{Name: "torch features", Hint: "dpsight tests the features with a torch that Python can import"}
	if !torch {
		c.Detail = "no usable torch was found"
		return nil, c
	}
	features, err := TorchFeatures(ctx, python)
	if err != nil {
		c.fail(err)
		return nil, c
	}
	works := 0
	for _, f := range features {
		if f.OK {
			works++
		} else if f.Needed {
			c.Needed = true
		}
	}
	c.Detail = fmt.Sprintf("%d of %d work", works, len(features))
	c.OK, c.Hint = works == len(features), ""
	if !c.OK {
		c.Hint = "a recording works without a missing feature unless it is needed: another release of torch may have it"
	}
	return features, c
}

// checkAgent reports that the agent built into this program always records, and whether the installed Python package
// has the same agent.
func checkAgent(ctx context.Context, python string) Check {
	c := Check{Name: "agent", OK: true, Detail: "the program's own"}
	if python == "" {
		return c
	}
	answer, err := interpreter.Ask(ctx, python, os.Environ())
	if err != nil || len(answer.Package) == 0 {
		return c // another check reports an interpreter that does not run
	}
	folder := answer.Package[0]
	installed := strings.TrimSpace("the package dpsight " + answer.PackageVersion)
	if agent.Is(folder) {
		c.Detail += fmt.Sprintf("; %s in %s is the same", installed, filepath.Dir(folder))
	} else {
		c.Detail += fmt.Sprintf("; %s in %s differs, and recordings do not use it", installed, filepath.Dir(folder))
	}
	return c
}

func checkGPU() Check {
	c := Check{Name: "gpu", Hint: "without a GPU, dpsight runs experiments on the phantom GPU: it predicts memory, not " +
		"time"}
	library, err := nvml.Open()
	if err != nil {
		c.Detail = err.Error()
		if hasGPUFile() {
			c.OK, c.Detail, c.Hint = true, "a GPU without NVML: "+err.Error(),
				"use a build with cgo for samples of memory and power"
		}
		return c
	}
	defer library.Close()
	var names []string
	for _, d := range library.Devices() {
		info := d.Info()
		names = append(names, fmt.Sprintf("%d: %s, %.0f GiB", info.Index, info.Name, float64(info.TotalBytes)/(1<<30)))
	}
	if len(names) == 0 {
		c.Detail = "NVML finds no GPU"
		return c
	}
	c.OK, c.Hint, c.Detail = true, "", fmt.Sprintf("driver %s; %s", library.Driver(), strings.Join(names, "; "))
	return c
}

// checkCompiler accepts missing compilers if the phantom GPU was built without them. library is nil if there is no
// phantom GPU.
func checkCompiler(ctx context.Context, library *phantom.Library) Check {
	c := Check{Name: "gcc", Hint: "install gcc and g++ (apt-get install gcc g++ libc6-dev): dpsight " +
		"compiles the phantom GPU at first use"}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var versions []string
	var err error
	for _, name := range []string{"gcc", "g++"} {
		var out []byte
		if out, err = exec.CommandContext(ctx, name, "--version").Output(); err != nil {
			c.Detail = name + " cannot be run: " + whyNotFound(err)
			break
		}
		versions = append(versions, firstLine(string(out)))
	}
	if err == nil {
		c.Detail = strings.Join(versions, "; ")
	}
	unneeded := library != nil && library.Compiler == ""
	if unneeded {
		c.Detail += "; not needed: the phantom GPU for torch " + library.TorchVersion + " is inside dpsight"
	}
	if c.OK = err == nil || unneeded; c.OK {
		c.Hint = ""
	}
	return c
}

func checkPhantom(ctx context.Context, python string, torch bool) (Check, *phantom.Library) {
	c := Check{Name: "phantom gpu", Hint: "the phantom GPU needs Linux on x86-64, a CUDA build of torch, gcc and g++"}
	if !torch {
		c.Detail = "no usable torch was found"
		return c, nil
	}
	p, err := phantom.LoadProfile(phantom.DefaultProfile)
	if err == nil {
		m := &Machine{Predicted: true, profile: p}
		var lib *phantom.Library
		if lib, err = m.buildPhantom(ctx, python); err == nil {
			c.OK, c.Hint = true, ""
			made := "inside dpsight"
			if lib.Compiler != "" {
				made = "compiled by " + lib.Compiler
			}
			c.Detail = fmt.Sprintf("for torch %s, %s; profiles: %s", lib.TorchVersion, made,
				strings.Join(phantom.Profiles(), ", "))
			return c, lib
		}
	}
	hint := c.Hint
	if c.fail(err); c.Hint == "" {
		c.Hint = hint
	}
	return c, nil
}

// checkStore checks the store without creating it, since doctor must not write.
func checkStore(store string) Check {
	c := Check{Name: "store", Needed: true, Hint: "name another folder with --store"}
	path, err := filepath.Abs(store)
	if err != nil {
		c.Detail = err.Error()
		return c
	}
	dir := path
	for {
		st, err := os.Stat(dir)
		if err == nil && !st.IsDir() {
			c.Detail = dir + " is not a folder"
			return c
		}
		if err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".dpsight-*")
	if err != nil {
		c.Detail = fmt.Sprintf("%s cannot be written", path)
		return c
	}
	f.Close()
	os.Remove(f.Name())
	c.OK, c.Detail, c.Hint = true, path, ""
	return c
}

func checkCache() Check {
	c := Check{Name: "cache", Hint: "set XDG_CACHE_HOME to a writable folder: dpsight keeps the phantom GPU there"}
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "dpsight")
		err = os.MkdirAll(cache, 0o755)
	}
	if err != nil {
		c.Detail = err.Error()
		return c
	}
	c.OK, c.Detail, c.Hint = true, cache, ""
	return c
}
