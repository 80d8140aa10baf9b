package memory

// TopAndRest takes the first n of a list, sorted by weight, and what is left of it for one row that sums it up. A
// single one is not left: a row for it would save none.
func TopAndRest[T any](list []T, n int) (first, left []T) {
	if len(list)-n < 2 {
		return list, nil
	}
	return list[:n], list[n:]
}
