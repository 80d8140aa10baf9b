package phantom

import (
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each card that the HTML page compares runs with (report/web/src/cards.ts) has the total memory of a device profile.
func TestCardsOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../report/web/src/cards.ts")
	if err != nil {
		t.Fatal(err)
	}
	known := map[int64]bool{}
	names, err := fs.Glob(profileFiles, "profiles/*.json")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		b, err := fs.ReadFile(profileFiles, name)
		if err != nil {
			t.Fatal(err)
		}
		var p struct{ Properties map[string]int64 }
		if err := json.Unmarshal(b, &p); err != nil {
			t.Fatal(name, err)
		}
		known[p.Properties["total_memory_bytes"]] = true
	}
	found := regexp.MustCompile(`bytes: ([0-9_]+)`).FindAllStringSubmatch(string(text), -1)
	for _, m := range found {
		bytes, err := strconv.ParseInt(strings.ReplaceAll(m[1], "_", ""), 10, 64)
		if err != nil || !known[bytes] {
			t.Errorf("no profile has a card of %s bytes", m[1])
		}
	}
	if len(found) < 5 {
		t.Errorf("%d cards", len(found))
	}
}
