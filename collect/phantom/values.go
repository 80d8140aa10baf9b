package phantom

import (
	"context"
	"fmt"
	"path/filepath"
)

// valuesLibrary is the file of the library that follows the values of small tensors. That library registers kernels
// with torch's dispatcher, so it is C++ compiled against torch's headers. libphantom is a separate library in C,
// compiled without torch's headers.
const valuesLibrary = "libphantom_values.so"

// buildValues compiles the library of csrc/values. The linker refers to torch's libraries only by name, since a process
// loads them before this library.
func (c compiler) buildValues(ctx context.Context, work, out string, torch torchInstall) error {
	libraries := filepath.Dir(torch.libraries[0])
	return c.run(ctx,
		"-O1", "-fPIC", "-std=c++20", "-w", "-shared", "-Wl,-soname,"+valuesLibrary,
		fmt.Sprintf("-DPHANTOM_TORCH=%q", torch.version),
		"-isystem", filepath.Join(filepath.Dir(libraries), "include"),
		filepath.Join(work, "csrc", "values", "values.cpp"),
		"-L"+libraries, "-ltorch_cpu", "-lc10",
		"-o", filepath.Join(out, valuesLibrary),
	)
}
