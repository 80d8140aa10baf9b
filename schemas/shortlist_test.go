package schemas

import "testing"

func TestShortlist(t *testing.T) {
	for want, most := range map[string]int{"a, b, c": 3, "a, b and 1 more": 2, "a and 2 more": 1} {
		if got := Shortlist([]string{"a", "b", "c"}, most); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
