package phantom

import (
	"strings"
	"testing"
)

// The private parts of torch exist in every tested version, except the one whose absence is known.
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
