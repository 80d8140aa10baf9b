package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/schemas"
)

// Of a script as it was found and as it is advised, the peak falls by what the first finding prints: to the byte, or by
// that at least where the finding says so. As advised it no longer has the finding.
func TestAdvisedScriptsPeakLower(t *testing.T) {
	testkit.Rest(t)
	t.Parallel()
	python(t)
	for _, c := range []struct{ script, advised, id, confidence, line string }{
		{"case04", "nocache", "autocast-cache", "replayed", "h = layer(h)"},
		{"case13", "view", "ddp-gradient-copies", "replayed", ".backward()"},
		{"case15", "alone", "idle-models", "at_least", "copy.deepcopy(base)"},
	} {
		text, err := os.ReadFile(filepath.Join("../../collect/livetest/testdata/cases", c.script+".py"))
		if err != nil {
			t.Fatal(err)
		}
		run := func(args ...string) ([]finding, int64) {
			e := record(t, string(text), nil, args, "", nil)
			e.expect(t, schemas.StatusOK, exitDone)
			return findingsOf(t, e.store)["train"], e.allocated(t, "peak")
		}
		found, peak := run()
		advised, lower := run(c.advised)
		if len(found) == 0 || found[0].ID != c.id || found[0].Confidence != c.confidence || found[0].saves() == nil {
			t.Errorf("%s: %+v", c.script, found)
			continue
		}
		f := &found[0]
		falls := peak - lower
		if *f.saves() != falls && c.confidence == "replayed" || *f.saves() > falls {
			t.Errorf("%s: %s saves %d bytes, and %s takes %d less", c.script, c.id, *f.saves(), c.advised, falls)
		}
		if !lineHas(t, string(text), f, c.line) {
			t.Errorf("%s: %+v", c.script, f.Place.Line)
		}
		if f := findFinding(advised, c.id); f != nil {
			t.Errorf("%s %s: %+v", c.script, c.advised, f)
		}
	}
}

// lineHas reports whether the line that a finding names has a text.
func lineHas(t *testing.T, script string, f *finding, want string) bool {
	t.Helper()
	if f.Place.Line == nil {
		return false
	}
	lines := strings.Split(script, "\n")
	n := int(f.Place.Line.Line)
	return n > 0 && n <= len(lines) && strings.Contains(lines[n-1], want)
}
