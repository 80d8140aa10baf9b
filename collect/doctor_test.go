package collect

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/phantom"
)

// Without gcc, doctor's check of the compiler succeeds only if dpsight contains a compiled phantom GPU for the
// interpreter's torch.
func TestCompilerThatIsNotNeeded(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, test := range []struct {
		library *phantom.Library
		ok      bool
		detail  string
	}{
		{nil, false, "gcc cannot be run"},
		{&phantom.Library{TorchVersion: "2.13.0", Compiler: "gcc 12"}, false, "gcc cannot be run"},
		{&phantom.Library{TorchVersion: "2.13.0"}, true, "not needed: the phantom GPU for torch 2.13.0 is inside dpsight"},
	} {
		c := checkCompiler(t.Context(), test.library)
		if c.OK != test.ok || c.OK != (c.Hint == "") || !strings.Contains(c.Detail, test.detail) {
			t.Errorf("%+v: %+v", test.library, c)
		}
	}
}
