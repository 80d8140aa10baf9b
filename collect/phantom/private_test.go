package phantom

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

// private matches what torch does not promise to keep: names that begin with an underscore, of torch's modules and of
// what these modules call by torch's names.
var private = regexp.MustCompile(
	`torch\._[a-zA-Z]|_C\b|\b(c10d|dist|group|fake|module|tensor|changed|graph|backend)\._[a-z]`)

// What the Python modules use of torch's private parts stands in one file.
func TestPrivateNamesStandInOneFile(t *testing.T) {
	names, err := fs.Glob(modules, "pysrc/*.py")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, name := range names {
		source, err := modules.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(source), "\n") {
			if !private.MatchString(line) {
				continue
			}
			if path.Base(name) == "phantom_torch.py" {
				count++
			} else {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
	if count < 10 {
		t.Errorf("phantom_torch.py uses private names in %d lines", count)
	}
}

// The private parts of torch are there under the versions that are tested, but for the one whose absence is known.
func TestPrivateNamesAreThere(t *testing.T) {
	library, module := withModule(t)
	var got struct {
		Features, Missing []string
	}
	runScript(t, library, &got, "private.py", nil, module)
	for _, feature := range got.Missing {
		if feature != "truncated_normal" || strings.HasPrefix(library.TorchVersion, "2.11.") {
			t.Errorf("torch %s has no %s", library.TorchVersion, feature)
		}
	}
	if len(got.Features) < 5 {
		t.Errorf("features %q", got.Features)
	}
}
