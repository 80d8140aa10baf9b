package phantom

import "errors"

// Errors for the reasons why there can be no phantom GPU. Build wraps them with what it found and where. Each of them
// means that the machine or the environment lacks something, not that the build is broken.
var (
	// ErrPlatform means that the system is not Linux on x86-64.
	ErrPlatform = errors.New("the phantom GPU needs Linux on x86-64")
	// ErrNoPython means that the interpreter does not run.
	ErrNoPython = errors.New("no usable python interpreter")
	// ErrNoTorch means that the interpreter has no torch.
	ErrNoTorch = errors.New("no torch")
	// ErrCPUTorch means that the interpreter's torch was built for the CPU only, or for ROCm.
	ErrCPUTorch = errors.New("torch is not a CUDA build")
	// ErrNoHeaders means that the CUDA runtime headers are missing that come with such a torch.
	ErrNoHeaders = errors.New("no CUDA runtime headers")
	// ErrNoKernels means that torch was built without kernels for the profile's device.
	ErrNoKernels = errors.New("torch has no kernels for the device")
	// ErrNoCompiler means that there is no gcc.
	ErrNoCompiler = errors.New("no C compiler")
	// ErrNoCXXCompiler means that there is no g++.
	ErrNoCXXCompiler = errors.New("no C++ compiler")
)
