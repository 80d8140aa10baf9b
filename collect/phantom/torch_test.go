package phantom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/interpreter"
)

// fakePython returns a script that answers dpsight's questions as a Python interpreter does. fakePython also returns
// the folder in which a test can put a fake torch.
func fakePython(t *testing.T, withTorch bool) (python, site string) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the phantom GPU is for Linux on x86-64")
	}
	site = t.TempDir()
	t.Setenv("CUDA_HOME", "")
	t.Setenv("CUDA_PATH", "")
	torch := ""
	if withTorch {
		torch = fmt.Sprintf("%q", filepath.Join(site, "torch"))
	}
	python = filepath.Join(site, "python")
	script := fmt.Sprintf("#!/bin/sh\necho noise of a .pth file\necho '%s{\"executable\": \"%s\", \"python\": "+
		"\"3.11.7\", \"prefix\": \"%s\", \"torch\": [%s], \"nvidia\": []}'\n",
		interpreter.Marker, python, site, torch)
	write(t, python, script, 0o755)
	return python, site
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

const cudaVersionFile = "from typing import Optional\n__version__ = '2.11.0+cu130'\ncuda: Optional[str] = " +
	"'13.0'\nhip: Optional[str] = None\n"

func TestBuildSaysWhatIsMissing(t *testing.T) {
	const cpuVersionFile = "__version__ = '2.11.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n"
	for _, test := range []struct {
		name  string
		torch bool
		files map[string]string
		want  error
		text  string
	}{
		{"no torch", false, nil, ErrNoTorch, "3.11.7"},
		{"empty folder", true, map[string]string{"torch/x": ""}, ErrNoTorch, "torch"},
		{"cpu", true, map[string]string{"torch/version.py": cpuVersionFile}, ErrCPUTorch, "2.11.0+cpu"},
		{"no library", true, map[string]string{"torch/version.py": cudaVersionFile}, ErrCPUTorch, "libtorch_cuda.so"},
		{"no headers", true, map[string]string{"torch/version.py": cudaVersionFile, "torch/lib/libtorch_cuda.so": ""},
			ErrNoHeaders, "driver_types.h"},
		{"headers of another major", true, map[string]string{
			"torch/version.py": cudaVersionFile, "torch/lib/libtorch_cuda.so": "",
			"nvidia/cuda_runtime/include/driver_types.h":     "",
			"nvidia/cuda_runtime/include/cuda_runtime_api.h": "#define CUDART_VERSION 12080\n",
		}, ErrNoHeaders, "CUDA 13"},
	} {
		t.Run(test.name, func(t *testing.T) {
			python, site := fakePython(t, test.torch)
			for path, text := range test.files {
				write(t, filepath.Join(site, path), text, 0o644)
			}
			_, err := Build(t.Context(), Options{Python: python, CacheDir: t.TempDir()})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func completeFakeTorch(t *testing.T) string {
	python, site := fakePython(t, true)
	for path, text := range map[string]string{
		"torch/version.py": cudaVersionFile, "torch/lib/libtorch_cuda.so": "",
		"nvidia/cu13/include/driver_types.h":     "",
		"nvidia/cu13/include/cuda_runtime_api.h": "#define CUDART_VERSION  13020\n",
	} {
		write(t, filepath.Join(site, path), text, 0o644)
	}
	return python
}

func TestLocateTorch(t *testing.T) {
	install, err := locateTorch(t.Context(), completeFakeTorch(t))
	if err != nil {
		t.Fatal(err)
	}
	if install.version != "2.11.0+cu130" || install.cuda != "13.0" || install.cudart != 13020 ||
		len(install.libraries) != 1 {
		t.Errorf("got %+v", install)
	}
}

func TestBuildWithoutCompiler(t *testing.T) {
	_, err := Build(t.Context(), Options{Python: completeFakeTorch(t), CacheDir: t.TempDir(),
		Compiler: "no-such-compiler"})
	if !errors.Is(err, ErrNoCompiler) || !strings.Contains(err.Error(), "no-such-compiler") {
		t.Errorf("got %v", err)
	}
}

func TestBuildWithoutCXXCompiler(t *testing.T) {
	_, err := Build(t.Context(), Options{Python: completeFakeTorch(t), CacheDir: t.TempDir(),
		CXXCompiler: "no-such-compiler"})
	if !errors.Is(err, ErrNoCXXCompiler) || !strings.Contains(err.Error(), "no-such-compiler") {
		t.Errorf("got %v", err)
	}
}

func TestBuildRefusesACacheThatCannotBePreloaded(t *testing.T) {
	compiler := filepath.Join(t.TempDir(), "cc")
	python := completeFakeTorch(t)
	write(t, compiler, "#!/bin/sh\necho cc 1.0\n", 0o755)
	_, err := Build(t.Context(), Options{Python: python, CacheDir: filepath.Join(t.TempDir(), "my cache"),
		Compiler: compiler})
	if err == nil || !strings.Contains(err.Error(), "my cache") {
		t.Errorf("got %v", err)
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	python := completeFakeTorch(t)
	cache, compiler := t.TempDir(), filepath.Join(t.TempDir(), "cc")
	write(t, compiler, "#!/bin/sh\n[ \"$1\" = --version ] && exec echo cc 1.0\necho 'x.c:1: error: no such thing' "+
		">&2\nexit 1\n", 0o755)
	_, err := Build(t.Context(), Options{Python: python, CacheDir: cache, Compiler: compiler})
	if err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Fatalf("got %v", err)
	}
	left, err := os.ReadDir(cache)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestBuildWithoutPython(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the phantom GPU is for Linux on x86-64")
	}
	_, err := Build(t.Context(), Options{Python: filepath.Join(t.TempDir(), "python9"), CacheDir: t.TempDir()})
	if !errors.Is(err, ErrNoPython) {
		t.Errorf("got %v", err)
	}
}

func TestBuildStops(t *testing.T) {
	python := completeFakeTorch(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Build(ctx, Options{Python: python, CacheDir: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A build waits while another process builds the same folder. The waiting can be cancelled.
func TestBuildsWaitForEachOther(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "lib")
	unlock, err := lockBuild(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	got := make(chan error, 2)
	go func() {
		_, err := lockBuild(ctx, folder)
		got <- err
	}()
	time.Sleep(100 * time.Millisecond)
	stop()
	if err := <-got; runtime.GOOS == "linux" && !errors.Is(err, context.Canceled) {
		t.Errorf("a second build did not wait: %v", err)
	}
	go func() {
		again, err := lockBuild(t.Context(), folder)
		if err == nil {
			again()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder + ".lock"); err == nil {
		t.Error("the lock is left behind")
	}
}
