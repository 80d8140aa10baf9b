package paper

import (
	"math"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas/units"
)

// A unit divides values that are known in bytes, milliseconds or joules.
type unit struct {
	name   string
	size   float64
	digits int
	most   int // largest number of significant digits; 0 = all
}

var (
	gib     = unit{name: "GiB", size: 1 << 30, digits: 2}
	mib     = unit{name: "MiB", size: 1 << 20, digits: 1}
	seconds = unit{name: "s", size: 1000, digits: 2}
	millis  = unit{name: "ms", size: 1, digits: 0}
	percent = unit{name: "%", size: 1, digits: 1}
	times   = unit{name: "×", size: 1, digits: 2}
	rate    = unit{size: 1, most: 4}
	joules  = unit{name: "J", size: 1, digits: 1}
	kilo    = unit{name: "kJ", size: 1000, digits: 2}
)

// largest returns the largest magnitude among values.
func largest(values []float64) (most float64) {
	for _, v := range values {
		most = max(most, math.Abs(v))
	}
	return most
}

// chosen returns the unit of a column: the configured unit, or else the larger unit if some value reaches it.
func chosen(asked string, values []float64, large, small unit) unit {
	switch {
	case asked == small.name, asked != large.name && largest(values) < large.size:
		if small == millis && largest(values) < 10 { // whole numbers are too coarse for such small values
			small.digits = 2
		}
		return small
	}
	return large
}

// number prints a value, rounded once, half to even. A value other than zero never looks like zero: if it is too small
// for the digits, it prints as "<0.01", or as ">-0.01" if it is negative.
func number(v float64, u unit, signed bool) string {
	x := v / u.size
	if u.most > 0 && math.Abs(x) >= math.Pow10(u.most) {
		x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'e', u.most-1, 64), 64)
	}
	text := strconv.FormatFloat(x, 'f', u.digits, 64)
	if v != 0 && strings.Trim(text, "-0.") == "" {
		least := strconv.FormatFloat(math.Pow10(-u.digits), 'f', u.digits, 64)
		if v < 0 {
			return ">-" + least
		}
		return "<" + least
	}
	if strings.Trim(text, "-0.") == "" {
		return strings.TrimPrefix(text, "-")
	}
	if signed && v > 0 {
		text = "+" + text
	}
	return text
}

// pretty formats a number for people, with separated thousands and a true minus sign.
func pretty(text string) string {
	sign := ""
	switch {
	case strings.HasPrefix(text, ">-"):
		return ">−" + text[2:]
	case strings.HasPrefix(text, "+"):
		sign, text = "+", text[1:]
	case strings.HasPrefix(text, "-"):
		sign, text = "−", text[1:]
	}
	if text == "" || text[0] < '0' || text[0] > '9' {
		return text
	}
	return sign + units.Grouped(text)
}

// grouped separates the thousands of a parameter's value if it is a whole number, as tables do.
func grouped(value string) string {
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return units.Grouped(value)
	}
	return value
}
