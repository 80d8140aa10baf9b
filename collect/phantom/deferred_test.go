package phantom

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The test runs the phantom GPU's code for deferred host memory without torch. The test links each C program of
// testdata/deferred with deferred.c and reads.c. Each C program must exit with 0.
func TestDeferredMemory(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("there is no gcc")
	}
	dir := t.TempDir()
	compile := func(arguments ...string) {
		t.Helper()
		arguments = append([]string{"-O1", "-std=gnu11", "-w", "-D_GNU_SOURCE"}, arguments...)
		if output, err := exec.CommandContext(t.Context(), gcc, arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	library := filepath.Join(dir, "libdeferred.so")
	compile("-fPIC", "-shared", "-fvisibility=hidden", "-o", library,
		filepath.Join("csrc", "deferred.c"), filepath.Join("csrc", "reads.c"), "-lpthread", "-ldl")
	programs, err := filepath.Glob(filepath.Join("testdata", "deferred", "*.c"))
	if err != nil || len(programs) == 0 {
		t.Fatal(programs, err)
	}
	for _, source := range programs {
		name := filepath.Base(source)
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(dir, name+".out")
			compile("-o", program, source, library, "-lpthread", "-ldl")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if output, err := exec.CommandContext(ctx, program).CombinedOutput(); err != nil {
				t.Errorf("%v, after a minute at most\n%s", err, output)
			}
		})
	}
}
