package main

import (
	"strings"
	"testing"
)

// dpsight does not know the phases of an imported snapshot, and prints none. For memory without a Python frame, dpsight
// says why no frame is known.
func TestImportedSnapshotsSayWhatIsKnown(t *testing.T) {
	store := importedStore(t)
	for _, test := range []struct {
		line  string
		says  []string
		never string
	}{
		{"breakdown vanilla", []string{"vanilla [imported], cuda:0, after event 1384\n", "stacks explain 100.0 %"},
			"between"},
		{"breakdown vanilla --format json", []string{`"phase": null`}, "between"},
		{"breakdown vanilla --by stack", []string{"\n–  ", "–: 157.00 MiB (29.5 %) have no Python frame: "}, "is not known"},
		{"explain vanilla dpsgd", []string{"note: Each category is counted at its own run's peak.",
			"–: no Python frame: "}, "outside all phases"},
	} {
		r := must(t, "", append(strings.Fields(test.line), "--store", store)...)
		for _, says := range test.says {
			if !strings.Contains(r.stdout, says) {
				t.Errorf("%s: no %q in\n%s", test.line, says, r.stdout)
			}
		}
		if strings.Contains(r.stdout, test.never) {
			t.Errorf("%s: %q in\n%s", test.line, test.never, r.stdout)
		}
	}
}
