package phantom

import (
	"strings"
	"testing"
)

// The private names of torch that the phantom GPU's Python modules use exist in every tested version. Only
// truncated_normal may be missing, and not in torch 2.11.
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
