package memory

import (
	"github.com/dpsight/dpsight/analyze/prose"
	"slices"
	"testing"
)

func TestPart(t *testing.T) {
	list := []int{5, 4, 3, 2}
	for n, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 4, 4: 4, 9: 4} { // how many are first
		first, left := Part(list, n)
		if len(first) != want || !slices.Equal(slices.Concat(first, left), list) {
			t.Errorf("%d: %v and %v", n, first, left)
		}
	}
	if first, left := Part([]int(nil), 0); len(first)+len(left) != 0 {
		t.Errorf("of nothing: %v and %v", first, left)
	}
}

func TestSome(t *testing.T) {
	for want, most := range map[string]int{"a, b, c": 3, "a, b and 1 more": 2, "a and 2 more": 1} {
		if got := prose.Some([]string{"a", "b", "c"}, most); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
