package collect

import "testing"

// ranksWords lists ranks in words, such as "rank 1" or "ranks 0, 1 and 63".
func TestRanksWords(t *testing.T) {
	for want, ranks := range map[string][]string{"rank 1": {"1"}, "ranks 0 and 63": {"0", "63"},
		"ranks 0, 1 and 63": {"0", "1", "63"}} {
		if got := ranksWords(ranks); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
