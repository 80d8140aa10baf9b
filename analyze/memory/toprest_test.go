package memory

import (
	"slices"
	"testing"
)

func TestTopAndRest(t *testing.T) {
	list := []int{5, 4, 3, 2}
	// the number of values that are shown and not summed up
	for n, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 4, 4: 4, 9: 4} {
		first, left := TopAndRest(list, n)
		if len(first) != want || !slices.Equal(slices.Concat(first, left), list) {
			t.Errorf("%d: %v and %v", n, first, left)
		}
	}
	if first, left := TopAndRest([]int(nil), 0); len(first)+len(left) != 0 {
		t.Errorf("of nothing: %v and %v", first, left)
	}
}
