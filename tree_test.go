package dpsight_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxTree bounds the bytes of all tracked files, so that a clone stays small. maxRecorded bounds the bytes of
// recordings and of other test data.
const (
	maxTree     = 32 << 20
	maxRecorded = 25_000_000
)

// tracked returns the files that git tracks and that exist.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("the files are those that git tracks: %v", err)
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if st, err := os.Lstat(name); err == nil && st.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	if len(files) < 100 {
		t.Fatalf("git tracks %d files", len(files))
	}
	return files
}

func TestTreeIsSmall(t *testing.T) {
	var total, recorded int64
	for _, name := range tracked(t) {
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		total += st.Size()
		if strings.HasPrefix(name, "examples/") || strings.Contains(name, "/testdata/") {
			recorded += st.Size()
		}
	}
	if total > maxTree {
		t.Errorf("the tracked files take %d bytes, over %d", total, maxTree)
	}
	if recorded > maxRecorded {
		t.Errorf("recordings and other tests' data take %d bytes, over %d", recorded, maxRecorded)
	}
}

// ownHeaders lists the C headers of this repository. All of them were written for it.
var ownHeaders = map[string]bool{
	"collect/phantom/csrc/arena.h":                    true,
	"collect/phantom/csrc/convolution.h":              true,
	"collect/phantom/csrc/corrections/corrections.h":  true,
	"collect/phantom/csrc/corrections/rules.h":        true,
	"collect/phantom/csrc/deferred.h":                 true,
	"collect/phantom/csrc/phantom.h":                  true,
	"collect/phantom/csrc/plans.h":                    true,
	"collect/phantom/csrc/regions.h":                  true,
	"collect/phantom/csrc/driver/driver.h":            true,
	"collect/phantom/csrc/include/crt/host_defines.h": true,
	"collect/phantom/testdata/deferred/deferred.h":    true,
	"collect/phantom/csrc/tensor.h":                   true,
	"collect/phantom/csrc/values/call.h":              true,
	"collect/phantom/csrc/values/collective.h":        true,
	"collect/phantom/csrc/values/counted.h":           true,
	"collect/phantom/csrc/values/falling.h":           true,
	"collect/phantom/csrc/values/finite.h":            true,
	"collect/phantom/csrc/values/follow.h":            true,
	"collect/phantom/csrc/values/host.h":              true,
	"collect/phantom/csrc/values/known.h":             true,
	"collect/phantom/csrc/values/listener.h":          true,
	"collect/phantom/csrc/values/phantom.h":           true,
	"collect/phantom/csrc/values/plan.h":              true,
	"collect/phantom/csrc/values/reads.h":             true,
	"collect/phantom/csrc/values/sizes.h":             true,
	"collect/phantom/csrc/values/uniform.h":           true,
}

var (
	// foreign matches the copyright line of a CUDA header. The vendor's name is in two parts, so that this file does
	// not match.
	foreign  = regexp.MustCompile(`(?i)(copyright|\(c\))[^\n]{0,80}\bnvi` + `dia\b`)
	includes = regexp.MustCompile(`(?m)^\s*#\s*include\s*[<"]([^>"]+)[>"]`)
	// system matches headers of the system, which come with the compiler. Headers of torch (ATen, c10, torch) and of
	// C++, and driver_types.h, are read from the user's machine.
	system = regexp.MustCompile(`^((ATen|c10|torch)/[\w/]+\.h|[a-z_]+)$|` +
		`^(std\w+|string|strings|errno|pthread|dlfcn|unistd|fcntl|time|math|limits|inttypes|ctype|signal|link|sched|` +
		`locale|sys/\w+)\.h$`)
)

// The repository contains no CUDA header and no part of one. The licence does not allow it, and a copy might have
// another version than the user's torch.
func TestNoCUDAHeader(t *testing.T) {
	seen, cuda := 0, 0
	for _, name := range tracked(t) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := foreign.FindIndex(b); at != nil {
			t.Errorf("%s holds a foreign copyright: %q", name, b[at[0]:at[1]])
		}
		switch filepath.Ext(name) {
		case ".h", ".hh", ".hpp", ".cuh", ".inc":
			if !ownHeaders[name] {
				t.Errorf("%s is a C header that nobody here wrote", name)
			}
			seen++
		}
		if !strings.HasPrefix(name, "collect/phantom/csrc/") {
			continue
		}
		for _, m := range includes.FindAllSubmatch(b, -1) {
			header := string(m[1])
			switch {
			case header == "driver_types.h":
				cuda++
			case system.MatchString(header):
			case bytes.HasPrefix(bytes.TrimSpace(m[0]), []byte("#include \"")):
				if !ownHeaders[filepath.ToSlash(filepath.Join(filepath.Dir(name), header))] {
					t.Errorf("%s includes %q, which is not in the repository", name, header)
				}
			default:
				t.Errorf("%s includes <%s>: of CUDA only driver_types.h is read, where the user's torch has it", name,
					header)
			}
		}
	}
	if seen != len(ownHeaders) || cuda == 0 {
		t.Errorf("%d of %d headers found, %d includes of driver_types.h", seen, len(ownHeaders), cuda)
	}
}
