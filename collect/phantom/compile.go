package phantom

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

type compiler struct {
	path    string
	version string
}

// compilers are the compilers for C and C++. torch's interface needs C++.
type compilers struct{ c, cxx compiler }

func findCompilers(ctx context.Context, options Options) (found compilers, err error) {
	if found.c, err = findCompiler(ctx, cmp.Or(options.Compiler, "gcc"), ErrNoCompiler); err != nil {
		return found, err
	}
	found.cxx, err = findCompiler(ctx, cmp.Or(options.CXXCompiler, "g++"), ErrNoCXXCompiler)
	return found, err
}

func findCompiler(ctx context.Context, name string, missing error) (compiler, error) {
	found, err := exec.LookPath(name)
	if err != nil {
		return compiler{}, fmt.Errorf("%w: %s is not on PATH, and dpsight compiles the phantom GPU at first use",
			missing, name)
	}
	output, err := exec.CommandContext(ctx, found, "--version").Output()
	if ctx.Err() != nil {
		return compiler{}, ctx.Err()
	}
	if err != nil {
		return compiler{}, fmt.Errorf("%w: %s --version: %w", missing, found, err)
	}
	version, _, _ := strings.Cut(string(output), "\n")
	return compiler{path: found, version: version}, nil
}

func (c compiler) run(ctx context.Context, arguments ...string) error {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, c.path, arguments...)
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", c.path, err, firstError(output.String()))
	}
	return nil
}

func firstError(output string) string {
	for _, line := range strings.Split(output, "\n") {
		if strings.Contains(line, "error") || strings.Contains(line, "undefined") {
			return strings.TrimSpace(line)
		}
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// A target is a shared library to build: its file, its soname, the folders of its sources, and the symbols that it
// provides for torch.
type target struct {
	file, soname string
	folders      []string
	wanted       func(string) bool
}

// sources returns the C files of the library.
func (t target) sources() (files []string, err error) {
	for _, folder := range t.folders {
		found, err := fs.Glob(sources, path.Join(folder, "*.c"))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

var targets = []target{
	{"libphantom.so", "libphantom.so", []string{"csrc", "csrc/corrections"}, isRuntimeSymbol},
	{"libcuda.so.1", "libcuda.so.1", []string{"csrc/driver"}, isDriverSymbol},
	{"libnvidia-ml.so.1", "libnvidia-ml.so.1", []string{"csrc/nvml"}, func(string) bool { return false }},
}

// objectFlags returns the compiler flags for the C sources that were unpacked into work.
func objectFlags(work string, torch torchInstall) []string {
	return []string{
		"-O1", "-fPIC", "-std=gnu11", "-w", "-fvisibility=hidden", "-D_GNU_SOURCE",
		fmt.Sprintf("-DPHANTOM_CUDART_VERSION=%d", torch.cudart),
		"-I" + filepath.Join(work, "csrc", "include"), "-isystem", torch.include,
	}
}

// compileAll unpacks the sources into work and builds the libraries in out.
func compileAll(ctx context.Context, work, out string, torch torchInstall, compilers compilers) error {
	compiler := compilers.c
	if err := os.CopyFS(work, sources); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	flags := objectFlags(work, torch)
	// The slowest job is first: the others together take a second.
	jobs := []func() error{func() error { return compilers.cxx.buildValues(ctx, work, out, torch) }}
	objects := make([][]string, len(targets))
	for i, target := range targets {
		files, err := target.sources()
		if err != nil {
			return err
		}
		for _, file := range files {
			source := filepath.Join(work, filepath.FromSlash(file))
			object := strings.TrimSuffix(source, ".c") + ".o"
			objects[i] = append(objects[i], object)
			jobs = append(jobs, func() error {
				return compiler.run(ctx, append(append([]string{}, flags...), "-c", source, "-o", object)...)
			})
		}
	}
	var needed []string
	jobs = append(jobs, func() (err error) {
		needed, err = neededSymbols(torch.libraries)
		return err
	})
	if err := inParallel(ctx, jobs); err != nil {
		return err
	}
	jobs = nil
	for i, target := range targets {
		jobs = append(jobs, func() error { return compiler.link(ctx, work, out, target, objects[i], needed) })
	}
	return inParallel(ctx, jobs)
}

func (c compiler) link(ctx context.Context, work, out string, target target, objects, undefined []string) error {
	defined := map[string]bool{}
	for _, object := range objects {
		if err := definedSymbols(object, defined); err != nil {
			return err
		}
	}
	stubs := filepath.Join(work, target.file+".stubs.c")
	if err := os.WriteFile(stubs, generateStubs(undefined, defined, target.wanted), 0o644); err != nil {
		return err
	}
	arguments := []string{
		"-O0", "-fPIC", "-std=gnu11", "-w", "-shared", "-Wl,-soname," + target.soname,
		"-o", filepath.Join(out, target.file), stubs,
	}
	return c.run(ctx, append(append(arguments, objects...), "-lpthread", "-ldl")...)
}

// inParallel runs the jobs on as many goroutines as there are processors and returns the first error.
func inParallel(ctx context.Context, jobs []func() error) error {
	var (
		group sync.WaitGroup
		once  sync.Once
		first error
		queue = make(chan func() error)
	)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range min(len(jobs), runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for job := range queue {
				if err := job(); err != nil {
					once.Do(func() { first = err; stop() })
				}
			}
		})
	}
	for _, job := range jobs {
		if ctx.Err() != nil {
			break
		}
		queue <- job
	}
	close(queue)
	group.Wait()
	if first != nil {
		return first
	}
	return context.Cause(ctx)
}
