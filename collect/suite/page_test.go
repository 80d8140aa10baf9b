package suite

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// docs/suites.md has a row for every key that a suite's file may have. The error about an unknown key names all keys
// of the document.
func TestPageHasEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/suites.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{nameKey, repeatsKey, bareName}
	for f := range reflect.TypeFor[document]().Fields() {
		key := f.Tag.Get("yaml")
		if keys = append(keys, key); !strings.Contains(documentKeys+",", " "+key+",") {
			t.Errorf("the error leaves out %s", key)
		}
	}
	for _, key := range keys {
		if rows := strings.Count(string(page), "\n| `"+key+"` | "); rows == 0 {
			t.Errorf("docs/suites.md has no row for %s", key)
		}
	}
}
