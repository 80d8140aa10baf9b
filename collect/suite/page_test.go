package suite

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The page on suites has a row for every key that the reader takes, and the error that lists them names each.
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
