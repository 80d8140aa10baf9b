package livetest_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
)

// A script computes the same bits with and without dpsight, even while dpsight looks for the holders of tensors. The
// model is in host memory, since the phantom GPU does not compute such tensors.
func TestScriptsComputeTheSameBits(t *testing.T) {
	testkit.Rest(t)
	python := testkit.Python(t)
	takeSlot(t)
	for _, kind := range []string{"plain", "leak"} {
		alone := exec.Command(python, filepath.Join("testdata", "samebits.py"), "cpu", kind)
		out, err := alone.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := linesOf(t, string(out), "DIGEST ")
		got := linesOf(t, record(t, environment(), python, script(t, "samebits.py"), "cpu", kind).stdout, "DIGEST ")
		if len(want) != 1 || len(strings.Fields(want[0])) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %q beside dpsight, %q without", kind, got, want)
		}
	}
}
