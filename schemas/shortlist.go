package schemas

import (
	"fmt"
	"strings"
)

// Shortlist returns at most the given number of names, and how many more there are: "a, b and 3 more".
func Shortlist(names []string, most int) string {
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
