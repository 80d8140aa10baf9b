package identity

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// If a run has a suite's key or is a built-in experiment, its command's arguments do not distinguish it from other
// runs, since another version of dpsight may write other arguments.
func TestCommandsThatTellNothing(t *testing.T) {
	for _, m := range []*schemas.Manifest{
		{Command: []string{"python3", "-m", "dpsight_experiments", "--method", "ghost"}},
		{Command: []string{"python", "train.py"}, Suite: &schemas.SuiteRef{Key: "k"}},
		{},
	} {
		if got := CommandOf(m); got != nil {
			t.Errorf("%q: %q", m.Command, got)
		}
	}
	long := strings.Repeat("x", 60)
	got := argumentsOf([]string{"python", "-u", "t.py", "--lr=0.1", "--out", long + "/1", "--flag"})
	want := []string{"python", "-u t.py", "--lr=0.1", "--out …" + strings.Repeat("x", 37) + "/1", "--flag"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
