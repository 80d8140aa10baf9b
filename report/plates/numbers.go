package plates

import (
	"math"
	"strings"

	"github.com/dpsight/dpsight/schemas/units"
)

// A unit is the unit of an axis or of printed values.
type unit struct {
	name   string
	size   float64 // size of the unit, in bytes or seconds
	digits int     // decimals of a printed value
}

// unitOfBytes returns GiB, or MiB if every value is below 1 GiB, and smaller units for tiny models.
func unitOfBytes(most float64) unit {
	for _, u := range []unit{{"GiB", 1 << 30, 1}, {"MiB", 1 << 20, 1}, {"KiB", 1 << 10, 1}} {
		if most >= u.size {
			if most >= 1000*u.size {
				u.digits = 0
			}
			return u
		}
	}
	return unit{"B", 1, 0}
}

// unitOfSeconds returns s, or ms if every value is below 1 s.
func unitOfSeconds(most float64) unit {
	if most >= 1 {
		return unit{"s", 1, 1}
	}
	if most >= 0.01 {
		return unit{"ms", 1e-3, 0}
	}
	return unit{"ms", 1e-3, 2}
}

// in formats a value in the unit, rounded once from the exact value.
func (u unit) in(v float64) string { return decimal(v/u.size, u.digits) }

// decimal formats a number. A number above 0 but below half of the last digit prints as "<0.1".
func decimal(v float64, digits int) string {
	s := units.Fixed(math.Abs(v), digits)
	if v == 0 {
		return "0"
	}
	if strings.Trim(s, "0.") == "" {
		return "<" + units.Fixed(math.Pow(10, -float64(digits)), digits)
	}
	if v < 0 {
		return "−" + s
	}
	return s
}

// signed formats a change.
func signed(v float64, digits int) string {
	s := decimal(v, digits)
	if v > 0 && s[0] != '<' {
		return "+" + s
	}
	return s
}

// percent formats a value's change from a base: "+7.4 %".
func percent(v, base float64) string {
	p := (v/base - 1) * 100
	if math.Abs(p) >= 1000 {
		return signed(p, 0) + "\u2009%"
	}
	return signed(p, 1) + "\u2009%"
}

// ticks returns round values from low to high: at least two ticks, and at most most steps between them.
func ticks(low, high float64, most int) (out []tick) {
	if !(high > low) {
		return nil
	}
	raw := (high - low) / float64(max(most, 1))
	power := math.Floor(math.Log10(raw)) + 1
	for _, m := range []float64{10, 5, 2, 1, 0.5, 0.2, 0.1} { // factors of the power of ten above raw
		step := m / 10 * math.Pow(10, power)
		if step < raw*(1-1e-9) && len(out) > 1 {
			break
		}
		out = multiples(step, low, high)
	}
	return out
}

// multiples returns the multiples of step from low to high.
func multiples(step, low, high float64) (out []tick) {
	digits := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	for i := math.Ceil(low/step - 1e-9); i*step <= high*(1+1e-9); i++ {
		text := units.Fixed(math.Abs(i*step), digits)
		if i < 0 {
			text = "−" + text
		}
		out = append(out, tick{i * step, text})
	}
	return out
}
