package analyze

import (
	"strconv"
	"strings"
)

// mib is how warnings print bytes: as the tables beside them do, "4,470.05 MiB". Not 0 never looks like 0.
func mib(bytes int64) string {
	if bytes > 0 && bytes < 1<<20/200 {
		return "<0.01 MiB"
	}
	return thousands(strconv.FormatFloat(float64(bytes)/(1<<20), 'f', 2, 64)) + " MiB"
}

// thousands puts separators into a number without a sign.
func thousands(number string) string {
	whole, fraction, has := strings.Cut(number, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if !has {
		return whole
	}
	return whole + "." + fraction
}
