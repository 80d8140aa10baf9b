package analyze

import (
	"fmt"
	"strings"
)

// Part takes the first n of a list, sorted by weight, and what is left of it for one row that sums it up. A single one
// is not left: a row for it would save none.
func Part[T any](list []T, n int) (first, left []T) {
	if len(list)-n < 2 {
		return list, nil
	}
	return list[:n], list[n:]
}

// Some names the first most of a list and counts the others: "a, b and 3 more".
func Some(names []string, most int) string {
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
