package phantom

import (
	"context"
	"fmt"
	"path/filepath"
)

// valuesLibrary follows the values of small tensors. It is a part of torch's dispatcher, so it is written in C++
// against torch's own headers. libphantom knows nothing of torch.
const valuesLibrary = "libphantom_values.so"

// buildValues compiles the library of csrc/values. It is linked to torch's libraries by name: they are loaded before
// it.
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
