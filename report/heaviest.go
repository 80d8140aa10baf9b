package report

import (
	"github.com/dpsight/dpsight/analyze/memory"
)

// heaviest returns the first top items of a list sorted by weight, as long as heavy is true, and the other items, which
// share one row (see [memory.TopAndRest]). top 0 means all items.
func heaviest[T any](list []T, top int, heavy func(T) bool) (shown, left []T) {
	if top == 0 {
		return list, nil
	}
	n := 0
	for n < min(top, len(list)) && heavy(list[n]) {
		n++
	}
	return memory.TopAndRest(list, n)
}
