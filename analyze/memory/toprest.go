package memory

// TopAndRest returns the first n items of a list sorted by weight, and the rest for one row that sums it up. If only
// one item would be left, first includes it: a row for the rest would save nothing.
func TopAndRest[T any](list []T, n int) (first, left []T) {
	if len(list)-n < 2 {
		return list, nil
	}
	return list[:n], list[n:]
}
