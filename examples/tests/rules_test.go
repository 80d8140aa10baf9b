package examples_test

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/schemas"
)

var update = flag.Bool("update", false, "write down the categories of the recordings")

// categoriesFile has the version of the rules for categories. For each recording it has a digest of the categories at
// the peak and of their evidence.
var categoriesFile = filepath.Join("tests", "testdata", "categories.txt")

// digestOf returns a digest of the categories of a peak's bytes and their evidence.
func digestOf(d *memory.DeviceBreakdown) string {
	var b strings.Builder
	for _, c := range d.Categories {
		if c.Bytes != 0 {
			fmt.Fprintln(&b, c.Category, c.Bytes, c.Evidence)
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:6])
}

// ruled has the content of categoriesFile: a version of the rules, and the digests of recordings by these rules.
type ruled struct {
	rules   int
	digests map[string]string // by store and run
}

func (r *ruled) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "rules %d\n", r.rules)
	for _, name := range slices.Sorted(maps.Keys(r.digests)) {
		fmt.Fprintln(&b, r.digests[name], name)
	}
	return b.String()
}

func parseRuled(text string) (r ruled, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	if _, err := fmt.Sscanf(first, "rules %d", &r.rules); err != nil {
		return r, err
	}
	r.digests = map[string]string{}
	for line := range strings.Lines(rest) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		r.digests[name] = digest
	}
	return r, nil
}

// unversioned returns an error's text if the categories of kept recordings changed and the version of the rules did
// not. Otherwise it returns "".
func unversioned(kept, now *ruled) string {
	var moved []string
	for _, name := range slices.Sorted(maps.Keys(now.digests)) {
		if was, ok := kept.digests[name]; ok && was != now.digests[name] {
			moved = append(moved, name)
		}
	}
	if len(moved) == 0 || kept.rules != now.rules {
		return ""
	}
	return fmt.Sprintf("the categories of %d recordings, or how they are known, are others than rules %d made (%s): "+
		"raise RulesVersion in ingest/join/vocabulary.go, say in docs/categories.md what changed, and then write them down "+
		"with go test ./examples/tests -run TestBreakdownSums -update", len(moved), now.rules, schemas.Shortlist(moved, 5))
}

// holdToVersion fails the test if a recording's categories changed and the version of the rules did not, since only
// that version shows whether the categories of two runs are comparable. With -update it writes the digests to
// categoriesFile, unless the version should have changed.
func holdToVersion(t *testing.T, digests map[string]string) {
	t.Helper()
	now := ruled{ingest.RulesVersion, digests}
	text, err := os.ReadFile(categoriesFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if err == nil {
		kept, err := parseRuled(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if wrong := unversioned(&kept, &now); wrong != "" {
			t.Error(wrong)
			return
		}
		if !*update && string(text) != now.text() {
			t.Errorf("%s is of rules %d and %d recordings, there are rules %d and %d: -update", categoriesFile,
				kept.rules, len(kept.digests), now.rules, len(digests))
		}
	}
	if *update {
		if err := os.WriteFile(categoriesFile, []byte(now.text()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// If the categories of a recording change, unversioned asks for a new version of the rules. For a new or a removed
// recording it does not.
func TestChangedCategoriesNeedAVersion(t *testing.T) {
	kept, err := parseRuled((&ruled{9, map[string]string{"s/a": "1", "s/b": "2"}}).text())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rules   int
		digests map[string]string
		wrong   bool
	}{
		{9, map[string]string{"s/a": "1", "s/b": "2"}, false},
		{9, map[string]string{"s/a": "1", "s/b": "3"}, true},
		{10, map[string]string{"s/a": "1", "s/b": "3"}, false},
		{9, map[string]string{"s/a": "1", "s/c": "3"}, false},
	} {
		got := unversioned(&kept, &ruled{c.rules, c.digests})
		if (got != "") != c.wrong || c.wrong && (!strings.Contains(got, "(s/b)") || !strings.Contains(got, "raise")) {
			t.Errorf("%+v: %q", c, got)
		}
	}
	a := memory.DeviceBreakdown{Categories: []memory.CategoryBytes{{Category: schemas.Other, Bytes: 2}}}
	b := memory.DeviceBreakdown{Categories: []memory.CategoryBytes{{Category: schemas.Other, Bytes: 2,
		Evidence: memory.Evidence{PhaseOnlyBytes: 2}}}}
	if digestOf(&a) == digestOf(&b) {
		t.Error("the evidence is not in the digest")
	}
}
