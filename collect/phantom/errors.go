package phantom

import "errors"

// Reasons why there can be no phantom GPU. Build wraps these errors with what it found and where. Each of these errors
// means that the machine or the environment lacks something, not that the build is broken.
var (
	// ErrPlatform: not Linux on x86-64.
	ErrPlatform = errors.New("the phantom GPU needs Linux on x86-64")
	// ErrNoPython: the interpreter does not run.
	ErrNoPython = errors.New("no usable python interpreter")
	// ErrNoTorch: the interpreter has no torch.
	ErrNoTorch = errors.New("no torch")
	// ErrCPUTorch: the interpreter's torch is a CPU-only (or ROCm) build.
	ErrCPUTorch = errors.New("torch is not a CUDA build")
	// ErrNoHeaders: the CUDA runtime headers that such a torch brings along are not there.
	ErrNoHeaders = errors.New("no CUDA runtime headers")
	// ErrNoKernels: torch was built without kernels that the profile's device could run.
	ErrNoKernels = errors.New("torch has no kernels for the device")
	// ErrNoCompiler: no gcc.
	ErrNoCompiler = errors.New("no C compiler")
	// ErrNoCXXCompiler: no g++.
	ErrNoCXXCompiler = errors.New("no C++ compiler")
)
