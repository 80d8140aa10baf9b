package phantom

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// archiveOf returns a zip of fake libraries whose list of symbols has these functions.
func archiveOf(t *testing.T, symbols string) []byte {
	t.Helper()
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for _, name := range libraryFiles {
		if err := addFile(archive, name, []byte(name+"'s code")); err != nil {
			t.Fatal(err)
		}
	}
	if err := addFile(archive, symbolList, []byte(symbols)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// callingTorch makes a fake torch that calls one CUDA function, cudaMalloc. callingTorch also returns the name of the
// archive that Build looks for.
func callingTorch(t *testing.T) (python, archive string) {
	t.Helper()
	python = completeFakeTorch(t)
	library := filepath.Join(filepath.Dir(python), "torch", "lib", "libtorch_cuda.so")
	if err := os.Remove(library); err != nil {
		t.Fatal(err)
	}
	gcc := exec.Command("gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", library)
	gcc.Stdin = strings.NewReader("int cudaMalloc(void); int call(void) { return cudaMalloc(); }")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	torch, err := locateTorch(t.Context(), python)
	if err != nil {
		t.Fatal(err)
	}
	name, err := archiveName(torch)
	if err != nil {
		t.Fatal(err)
	}
	return python, "prebuilt/" + name
}

// If dpsight contains compiled libraries with every CUDA function that torch calls, Build unpacks them and needs no
// compiler.
func TestBuildUnpacks(t *testing.T) {
	python, name := callingTorch(t)
	options := Options{Python: python, CacheDir: t.TempDir()}
	options.archives = fstest.MapFS{name: {Data: archiveOf(t, "cudaFree\ncudaMalloc\n")}}
	path := os.Getenv("PATH")
	t.Setenv("PATH", filepath.Dir(python))
	for _, when := range []string{"new", "from the cache"} {
		library, err := Build(t.Context(), options)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if library.Compiler != "" || !complete(library.Dir) {
			t.Errorf("%s: compiled by %q in %s", when, library.Compiler, library.Dir)
		}
		data, err := os.ReadFile(filepath.Join(library.Dir, driverLink))
		if err != nil || string(data) != "libcuda.so.1's code" {
			t.Errorf("%s: %q, %v", when, data, err)
		}
		if _, err := os.Stat(filepath.Join(library.Dir, symbolList)); err == nil {
			t.Errorf("%s: the list of symbols lies among the libraries", when)
		}
	}

	unlike := options
	unlike.archives = fstest.MapFS{name: {Data: archiveOf(t, "cudaFree\n")}}
	_, err := Build(t.Context(), unlike)
	if !errors.Is(err, ErrNoCompiler) ||
		!strings.Contains(err.Error(), "contains the phantom GPU only for torch 2.11.0+cu130") {
		t.Errorf("libraries that lack a function: %v", err)
	}
	broken := options
	broken.archives = fstest.MapFS{name: {Data: []byte("no archive")}}
	if _, err := Build(t.Context(), broken); err == nil || !strings.Contains(err.Error(), "in this build of dpsight") {
		t.Errorf("a broken archive: %v", err)
	}

	// If a compiler is named explicitly, Build must use it.
	t.Setenv("PATH", path)
	named := options
	named.Compiler = "no-such-compiler"
	if _, err := Build(t.Context(), named); !errors.Is(err, ErrNoCompiler) {
		t.Errorf("a compiler that is named: %v", err)
	}
}

// A dpsight that was built from a checkout contains no compiled phantom GPU.
func TestNothingPrebuilt(t *testing.T) {
	if inside := versionsIn(prebuilt); len(inside) > 0 {
		t.Errorf("%v", inside)
	}
	other := fstest.MapFS{"prebuilt/2.11.0+cu130-12ab.zip": {}, "prebuilt/README.md": {}}
	if got := strings.Join(versionsIn(other), " "); got != "2.11.0+cu130" {
		t.Errorf("%q", got)
	}
}
