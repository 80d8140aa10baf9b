package phantom

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// architecture is a target for which torch's kernels were compiled, such as sm_86, sm_90a or compute_120.
type architecture struct {
	// ptx is true for compute_*: the driver can compile such kernels for any later device.
	ptx          bool
	major, minor int
	// feature is 'a' if only this exact device runs the kernels, 'f' if later devices of the same family do too, and 0
	// otherwise.
	feature byte
}

// kernelVersion is the version that a device reports of a kernel that it runs, as 10 * major + minor.
type kernelVersion struct{ ptx, binary int }

var (
	architectureWord = regexp.MustCompile(`^(sm|compute)_([0-9]+)([0-9])([af]?)$`)
	architectureList = regexp.MustCompile(`^(?:sm|compute)_[0-9]+[af]?(?: (?:sm|compute)_[0-9]+[af]?)*$`)
)

// readArchitectures returns the result of torch.cuda.get_arch_list(), a string that torch's build writes into
// libtorch_python. Importing torch to ask for it would take seconds, and the format of the kernels themselves is not
// documented. If the library has no such string, or two, the result is empty, and torch is assumed to have kernels for
// the device.
func readArchitectures(library string) []architecture {
	data, err := os.ReadFile(library)
	if err != nil {
		return nil
	}
	list := ""
	for _, prefix := range []string{"\x00sm_", "\x00compute_"} {
		for rest := data; ; {
			start := bytes.Index(rest, []byte(prefix))
			if start < 0 {
				break
			}
			rest = rest[start+1:]
			end := bytes.IndexByte(rest, 0)
			if end < 0 || !architectureList.Match(rest[:end]) {
				continue
			}
			if list != "" && list != string(rest[:end]) {
				return nil
			}
			list = string(rest[:end])
		}
	}
	var architectures []architecture
	for _, word := range strings.Fields(list) {
		if a, ok := parseArchitecture(word); ok {
			architectures = append(architectures, a)
		}
	}
	return architectures
}

func parseArchitecture(word string) (architecture, bool) {
	match := architectureWord.FindStringSubmatch(word)
	if match == nil {
		return architecture{}, false
	}
	a := architecture{ptx: match[1] == "compute"}
	var err error
	if a.major, err = strconv.Atoi(match[2]); err != nil {
		return architecture{}, false
	}
	a.minor = int(match[3][0] - '0')
	if match[4] != "" {
		a.feature = match[4][0]
	}
	return a, true
}

func (a architecture) String() string {
	kind, feature := "sm", ""
	if a.ptx {
		kind = "compute"
	}
	if a.feature != 0 {
		feature = string(a.feature)
	}
	return fmt.Sprintf("%s_%d%d%s", kind, a.major, a.minor, feature)
}

func (a architecture) version() int { return 10*a.major + a.minor }

// runsOn reports whether a device runs kernels of the architecture, by CUDA's rule of binary and PTX compatibility.
func (a architecture) runsOn(major, minor int) bool {
	switch {
	case a.feature == 'a':
		return a.major == major && a.minor == minor
	case a.ptx && a.feature == 0:
		return a.version() <= 10*major+minor
	}
	return a.major == major && a.minor <= minor
}

// kernelsFor returns the version of torch's kernels that the profile's device runs: the latest binary code that it can
// run, or else what the driver compiles from the latest PTX. If there is neither, it returns ErrNoKernels: every kernel
// would fail on such a device.
func (t torchInstall) kernelsFor(profile Profile) (kernelVersion, error) {
	major, minor := int(profile.Properties["compute_major"]), int(profile.Properties["compute_minor"])
	device := 10*major + minor
	if len(t.architectures) == 0 {
		return kernelVersion{device, device}, nil
	}
	var names []string
	binary, ptx := 0, 0
	for _, a := range t.architectures {
		names = append(names, a.String())
		switch {
		case !a.runsOn(major, minor):
		case a.ptx:
			ptx = max(ptx, a.version())
		default:
			binary = max(binary, a.version())
		}
	}
	switch {
	case binary > 0:
		return kernelVersion{binary, binary}, nil
	case ptx > 0:
		return kernelVersion{ptx, device}, nil
	}
	return kernelVersion{}, fmt.Errorf("%w: torch %s was built for %s, and %s has compute capability %d.%d",
		ErrNoKernels, t.version, strings.Join(names, " "), profile.Name, major, minor)
}
