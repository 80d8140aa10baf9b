package replay

import (
	"reflect"
	"strings"
	"testing"
)

// The sentences about anomalies of a trace have the right singular or plural.
func TestReason(t *testing.T) {
	var one, many Anomalies
	for _, a := range []struct {
		of *Anomalies
		n  int64
	}{{&one, 1}, {&many, 2}} {
		v := reflect.ValueOf(a.of).Elem()
		for i := range v.NumField() {
			if v.Field(i).Kind() == reflect.Int64 {
				v.Field(i).SetInt(a.n)
			}
		}
	}
	singular, plural := strings.Split(one.Reason(), "; "), strings.Split(many.Reason(), "; ")
	if len(singular) < 15 || len(singular) != len(plural) {
		t.Fatalf("%q, %q", singular, plural)
	}
	for i, s := range singular {
		for _, noun := range []string{"block", "segment", "free", "alloc", "malformed event", "malformed block",
			"contradiction"} {
			if strings.HasPrefix(s, "1 "+noun+"s") || strings.HasPrefix(plural[i], "2 "+noun+" ") {
				t.Errorf("%q, %q", s, plural[i])
			}
		}
	}
}
