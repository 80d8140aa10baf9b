package units

import (
	"fmt"
	"strconv"
	"strings"
)

// Percentage is a part of a whole, as 8% or 8.
type Percentage float64

// UnmarshalText reads a percentage from 0 to below 100.
func (p *Percentage) UnmarshalText(text []byte) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(string(text), "%"), 64)
	if err != nil || !(n >= 0 && n < 100) {
		return fmt.Errorf("%q is no percentage from 0 to below 100, as in 8%%", text)
	}
	*p = Percentage(n)
	return nil
}
