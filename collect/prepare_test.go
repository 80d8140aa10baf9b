package collect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/phantom"
)

// phantom.Unpack keeps the file names that the phantom GPU's Python modules have in the repository, so that tracebacks
// name the file in the repository.
func TestModulesOfThePhantom(t *testing.T) {
	dir := t.TempDir()
	listed, err := phantom.Unpack(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range listed {
		name := filepath.Base(path)
		names = append(names, name)
		got, err := os.ReadFile(path)
		want, missing := os.ReadFile(filepath.Join("phantom", "pysrc", name))
		if err != nil || missing != nil || string(got) != string(want) || filepath.Dir(path) != dir {
			t.Errorf("%s: %v, %v", path, err, missing)
		}
	}
	if !slices.Contains(names, "phantom_values.py") {
		t.Errorf("unpacked: %s", strings.Join(names, " "))
	}
}
