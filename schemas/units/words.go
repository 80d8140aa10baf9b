package units

import (
	"fmt"
	"strconv"
	"strings"
)

// MiB formats bytes for tables and sentences: "4,470.05 MiB".
func MiB(bytes int64) string { return InMiB(bytes) + " MiB" }

// InMiB returns the number in [MiB], without the unit. A value other than 0 is not rounded to 0.
func InMiB(bytes int64) string {
	mib := float64(bytes) / (1 << 20)
	switch {
	case bytes > 0 && mib < 0.005:
		return "<0.01"
	case bytes < 0 && mib > -0.005:
		return ">−0.01"
	}
	return Fixed(mib, 2)
}

// Fixed formats x with the given digits, thousands separators and a true minus sign.
func Fixed(x float64, digits int) string { return Grouped(strconv.FormatFloat(x, 'f', digits, 64)) }

// Grouped puts thousands separators into a decimal number, and replaces its hyphen by a true minus sign, or removes it
// if the number is 0.
func Grouped(number string) string {
	number, negative := strings.CutPrefix(number, "-")
	whole, fraction, has := strings.Cut(number, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if has {
		whole += "." + fraction
	}
	if negative && strings.Trim(whole, "0.,") != "" {
		return "−" + whole
	}
	return whole
}

// Plural returns a number with its noun: "1 step" or "3 steps".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
