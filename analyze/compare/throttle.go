package compare

import (
	"fmt"
	"strings"

	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// throttleWords say in how many timed steps a GPU was slowed down, and why; empty where in none, or in none known.
func throttleWords(t timing.Throttle) string {
	if t.Slowed == 0 {
		return ""
	}
	of := fmt.Sprintf("%d timed steps", t.Steps)
	if t.Sampled < t.Steps {
		of = fmt.Sprintf("%d timed steps that were sampled", t.Sampled)
	}
	return fmt.Sprintf("%d of %s (%s)", t.Slowed, of, strings.Join(schemas.ThrottleNames(t.Reasons), ", "))
}
