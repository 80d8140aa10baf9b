package memory

// TopAndRest returns the first n items of a list sorted by weight, and the remaining items, which a table sums in one
// row. If only one item would remain, first includes it, since a row for the rest would save nothing.
func TopAndRest[T any](list []T, n int) (first, left []T) {
	if len(list)-n < 2 {
		return list, nil
	}
	return list[:n], list[n:]
}
