package identity

import (
	"reflect"
	"testing"
)

// Runs are grouped by the version of the rules that determined their categories. A run without categories is in no
// group. An unknown version forms a group of its own.
func TestRulesApart(t *testing.T) {
	of := func(rules ...*int) (ids []*Identity) {
		for _, r := range rules {
			ids = append(ids, &Identity{Rules: r})
		}
		return ids
	}
	unknown, nine, ten := new(0), new(9), new(10)
	for _, c := range []struct {
		what string
		ids  []*Identity
		want []ByRules
	}{
		{"none", nil, nil},
		{"one version", of(nine, nil, nine), nil},
		{"unknown alone", of(unknown, unknown), nil},
		{"two versions", of(ten, nil, nine, ten), []ByRules{{9, []int{2}}, {10, []int{0, 3}}}},
		{"unknown and known", of(nine, unknown), []ByRules{{0, []int{1}}, {9, []int{0}}}},
	} {
		if got := RulesApart(c.ids); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}
