package timing

import (
	"testing"
)

// The rank k must equal the rank in the textbook (Conover, table A3). In this table, [x(k), x(n+1-k)] covers the median
// with a probability of at least 95 %.
func TestMedianRank(t *testing.T) {
	for n, want := range map[int]int{1: 0, 5: 0, 6: 1, 8: 1, 9: 2, 12: 3, 15: 4, 20: 6, 30: 10, 100: 40, 1001: 470} {
		if got := medianRank(n); got != want {
			t.Errorf("n = %d: rank %d, want %d", n, got, want)
		}
	}
}
