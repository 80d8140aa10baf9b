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
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(float64(bytes)/(1<<20), 'f', 2, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return whole + "." + fraction + " MiB"
}
