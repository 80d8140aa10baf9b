package phantom

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

//go:embed csrc
var sources embed.FS

// Options says which phantom GPU to build.
type Options struct {
	// Python is the interpreter with the torch for which the phantom GPU is built: a path, or a name on PATH.
	Python string
	// CacheDir is the folder of compiled libraries. "" means dpsight/phantom in the user's cache directory. Several
	// builds may use it at the same time.
	CacheDir string
	// Profile is the device that the phantom GPU presents. The zero Profile means DefaultProfile.
	Profile Profile
	// Compiler is the C compiler; "" means gcc. CXXCompiler is the C++ compiler; "" means g++. If either is given, the
	// libraries are compiled even if this build of dpsight contains them.
	Compiler, CXXCompiler string

	archives fs.FS // archives inside this build of dpsight; nil means prebuilt
}

// libraryFiles are the compiled files. libraryNames also has the link to one of them that Triton needs for linking.
var (
	libraryFiles = []string{"libphantom.so", "libcuda.so.1", "libnvidia-ml.so.1", valuesLibrary}
	libraryNames = append([]string{driverLink}, libraryFiles...)
)

const driverLink = "libcuda.so"

// making is one way of getting the libraries for a torch.
type making struct {
	compiler string // as in [Library]
	key      string // what the result depends on besides the sources and torch
	fill     func(ctx context.Context, work, out string) error
}

// Build returns the phantom GPU for the torch of an interpreter. Build takes the libraries from the cache, or else
// unpacks them if this build of dpsight contains them, or else compiles them. Build finds torch without importing
// torch. The cache's key is a hash of the C sources, torch's version, the names, sizes and times of torch's libraries,
// the version of the CUDA headers, and the compilers or the unpacked files. Concurrent builds wait for the first one.
// If builds cannot wait for one another, each build works in its own folder, and the first result is kept.
//
// Errors wrap ErrPlatform, ErrNoPython, ErrNoTorch, ErrCPUTorch, ErrNoHeaders, ErrNoKernels, ErrNoCompiler or
// ErrNoCXXCompiler if the environment lacks something.
func Build(ctx context.Context, options Options) (*Library, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("%w, and this is %s/%s", ErrPlatform, runtime.GOOS, runtime.GOARCH)
	}
	profile := options.Profile
	if profile.ID == "" {
		var err error
		if profile, err = LoadProfile(DefaultProfile); err != nil {
			return nil, err
		}
	} else if err := profile.check(); err != nil {
		return nil, fmt.Errorf("device profile %q: %w", profile.ID, err)
	}
	torch, err := locateTorch(ctx, options.Python)
	if err != nil {
		return nil, err
	}
	kernels, err := torch.kernelsFor(profile)
	if err != nil {
		return nil, err
	}
	making, err := chooseMaking(ctx, torch, options)
	if err != nil {
		return nil, err
	}
	cache, err := cacheDir(options.CacheDir)
	if err != nil {
		return nil, err
	}
	key, err := cacheKey(torch, making)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(cache, "lib-"+key)
	if !complete(folder) {
		if err := buildInto(ctx, folder, torch, making); err != nil {
			return nil, err
		}
	}
	profilePath, err := writeProfile(cache, profile, kernels)
	if err != nil {
		return nil, err
	}
	return &Library{
		Dir:          folder,
		ProfilePath:  profilePath,
		Profile:      profile,
		Python:       torch.python,
		TorchVersion: torch.version,
		CUDAVersion:  torch.cuda,
		Compiler:     making.compiler,
		ScratchDir:   filepath.Join(cache, "compiled"),
	}, nil
}

// chooseMaking chooses how to get the libraries. chooseMaking prefers the libraries inside this build of dpsight, which
// need no compilation.
func chooseMaking(ctx context.Context, torch torchInstall, options Options) (making, error) {
	archives := options.archives
	if archives == nil {
		archives = prebuilt
	}
	if options.Compiler == "" && options.CXXCompiler == "" {
		if m, ok, err := unpacking(archives, torch); ok || err != nil {
			return m, err
		}
	}
	compilers, err := findCompilers(ctx, options)
	if err != nil {
		if inside := versionsIn(archives); len(inside) > 0 {
			err = fmt.Errorf("%w; this dpsight contains the phantom GPU only for torch %s, and this is torch %s", err,
				strings.Join(inside, " and "), torch.version)
		}
		return making{}, err
	}
	return making{
		compiler: compilers.c.version,
		key:      compilers.c.version + "\n" + compilers.cxx.version,
		fill: func(ctx context.Context, work, out string) error {
			return compileAll(ctx, work, out, torch, compilers)
		},
	}, nil
}

func cacheDir(folder string) (string, error) {
	if folder == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no cache directory for the phantom GPU: %w", err)
		}
		folder = filepath.Join(base, "dpsight", "phantom")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("cache directory of the phantom GPU: %w", err)
	}
	// LD_PRELOAD has no way to quote the characters that separate its entries.
	if strings.ContainsAny(folder, " :\t\n") {
		return "", fmt.Errorf("cache directory of the phantom GPU %q: the dynamic loader cannot take a path with a "+
			"space or a colon", folder)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("cache directory of the phantom GPU: %w", err)
	}
	return folder, nil
}

func hashSources(hash io.Writer) error {
	err := fs.WalkDir(sources, "csrc", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := sources.ReadFile(path)
		fmt.Fprintf(hash, "%s %d\n%s\n", path, len(data), data)
		return err
	})
	if err != nil {
		return fmt.Errorf("the phantom GPU's sources: %w", err)
	}
	return nil
}

// hashStubRules adds the rules of the stub generator, since the built libraries depend on them too.
func hashStubRules(hash io.Writer) {
	fmt.Fprintf(hash, "%s\n%s\n%s\n%s\n%+v\n", textFunction, transferFunction, queryFunction, setterFunction,
		cudaLibraries)
}

func cacheKey(torch torchInstall, making making) (string, error) {
	hash := sha256.New()
	if err := hashSources(hash); err != nil {
		return "", err
	}
	fmt.Fprintf(hash, "%s\n%s\n%d\n%s\n%s\n", torch.version, torch.cuda, torch.cudart, torch.include, making.key)
	hashStubRules(hash)
	for _, path := range torch.libraries {
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("torch's library: %w", err)
		}
		fmt.Fprintf(hash, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(hash.Sum(nil))[:20], nil
}

func complete(folder string) bool {
	for _, name := range libraryNames {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return false
		}
	}
	return true
}

// buildInto makes the libraries in a temporary folder beside the final one, which it then renames.
func buildInto(ctx context.Context, folder string, torch torchInstall, making making) error {
	unlock, err := lockBuild(ctx, folder)
	if err != nil {
		return err
	}
	defer unlock()
	if complete(folder) {
		return nil
	}
	removeAbandoned(filepath.Dir(folder))
	work, err := os.MkdirTemp(filepath.Dir(folder), filepath.Base(folder)+".partial-*")
	if err != nil {
		return fmt.Errorf("cannot build the phantom GPU: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	out := filepath.Join(work, "lib")
	if err := making.fill(ctx, filepath.Join(work, "made"), out); err != nil {
		return fmt.Errorf("cannot build the phantom GPU for torch %s: %w", torch.version, err)
	}
	if err := os.Symlink("libcuda.so.1", filepath.Join(out, driverLink)); err != nil {
		return fmt.Errorf("cannot build the phantom GPU: %w", err)
	}
	for _, name := range libraryNames {
		if err := syncFile(filepath.Join(out, name)); err != nil {
			return fmt.Errorf("cannot build the phantom GPU: %w", err)
		}
	}
	err = os.Rename(out, folder)
	if err == nil || complete(folder) {
		return nil
	}
	// The existing folder is incomplete, since an earlier version of it was damaged.
	if errors.Is(err, fs.ErrExist) || isDir(folder) {
		if err = os.RemoveAll(folder); err == nil {
			err = os.Rename(out, folder)
		}
	}
	if err != nil && !complete(folder) {
		return fmt.Errorf("cannot build the phantom GPU: %w", err)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// removeAbandoned removes what killed builds left behind. No build takes an hour.
func removeAbandoned(cache string) {
	folders, err := filepath.Glob(filepath.Join(cache, "lib-*.partial-*"))
	if err != nil {
		return
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(folder)
		}
	}
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// writeProfile writes the profile to a file that the library can read. The file's name contains a hash of its content,
// so an existing file with that name has the right content.
func writeProfile(cache string, profile Profile, kernels kernelVersion) (string, error) {
	data := profile.encode(kernels)
	sum := sha256.Sum256(data)
	path := filepath.Join(cache, fmt.Sprintf("profile-%s-%s.txt", profile.ID, hex.EncodeToString(sum[:6])))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	file, err := os.CreateTemp(cache, filepath.Base(path)+".*.partial")
	if err != nil {
		return "", fmt.Errorf("cannot write the device profile: %w", err)
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(0o644), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return "", fmt.Errorf("cannot write the device profile: %w", err)
	}
	return path, nil
}
