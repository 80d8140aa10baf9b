package phantom

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/collect/interpreter"
)

// torchInstall is an installed CUDA build of torch, found without importing it.
type torchInstall struct {
	python  string // path of the interpreter, from its own sys.executable
	version string // such as 2.11.0+cu130
	cuda    string // such as 13.0
	// libraries are torch's own shared libraries, sorted.
	libraries []string
	// include is the folder with driver_types.h. cudart is its CUDART_VERSION, such as 13000.
	include string
	cudart  int
	// architectures lists the architectures for which torch's kernels were compiled, and is empty if torch does not
	// tell.
	architectures []architecture
}

var cudartLine = regexp.MustCompile(`(?m)^\s*#\s*define\s+CUDART_VERSION\s+([0-9]+)`)

// locateTorch finds the interpreter's torch. locateTorch returns ErrNoPython, ErrNoTorch, ErrCPUTorch or ErrNoHeaders
// if something is missing.
func locateTorch(ctx context.Context, python string) (torchInstall, error) {
	found, err := interpreter.Ask(ctx, python, nil)
	if ctx.Err() != nil {
		return torchInstall{}, ctx.Err()
	}
	if err != nil {
		return torchInstall{}, fmt.Errorf("%w: %w", ErrNoPython, err)
	}
	if len(found.Torch) == 0 {
		return torchInstall{}, fmt.Errorf("%w: %s (python %s) cannot import it", ErrNoTorch, found.Executable,
			found.Version)
	}
	folder := found.Torch[0]
	install := torchInstall{python: found.Executable}
	if install.version, install.cuda, err = interpreter.TorchBuild(folder); err != nil {
		return torchInstall{}, fmt.Errorf("%w: %s holds no torch: %w", ErrNoTorch, folder, err)
	}
	if install.cuda == "" {
		return torchInstall{}, fmt.Errorf("%w: torch %s in %s", ErrCPUTorch, install.version, folder)
	}
	install.libraries, err = filepath.Glob(filepath.Join(folder, "lib", "*.so"))
	if err != nil || !hasLibrary(install.libraries, "libtorch_cuda.so") {
		return torchInstall{}, fmt.Errorf("%w: torch %s in %s has no libtorch_cuda.so", ErrCPUTorch, install.version,
			folder)
	}
	slices.Sort(install.libraries)
	install.architectures = readArchitectures(filepath.Join(folder, "lib", "libtorch_python.so"))
	install.include, install.cudart, err = findHeaders(found, install)
	return install, err
}

func hasLibrary(paths []string, name string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return filepath.Base(path) == name })
}

// findHeaders looks for the CUDA runtime's headers where pip and conda put them for torch, then in a toolkit of the
// same major version.
func findHeaders(found *interpreter.Answer, install torchInstall) (include string, cudart int, err error) {
	major, _, _ := strings.Cut(install.cuda, ".")
	var folders []string
	roots := append(slices.Clone(found.Nvidia), filepath.Join(filepath.Dir(found.Torch[0]), "nvidia"))
	for _, root := range roots {
		folders = append(folders, filepath.Join(root, "cu"+major, "include"), filepath.Join(root, "cuda_runtime",
			"include"))
	}
	folders = append(folders, filepath.Join(found.Prefix, "targets", "x86_64-linux", "include"),
		filepath.Join(found.Prefix, "include"))
	for _, variable := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if home := os.Getenv(variable); home != "" {
			folders = append(folders, filepath.Join(home, "include"))
		}
	}
	folders = append(folders, "/usr/local/cuda-"+install.cuda+"/include", "/usr/local/cuda/include")
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "driver_types.h")); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, "cuda_runtime_api.h"))
		if err != nil {
			continue
		}
		match := cudartLine.FindSubmatch(text)
		if match == nil {
			continue
		}
		version, err := strconv.Atoi(string(match[1]))
		if err == nil && strconv.Itoa(version/1000) == major {
			return folder, version, nil
		}
	}
	return "", 0, fmt.Errorf("%w: torch %s in %s needs the headers of CUDA %s (driver_types.h, from the package "+
		"nvidia-cuda-runtime)",
		ErrNoHeaders, install.version, found.Torch[0], major)
}
