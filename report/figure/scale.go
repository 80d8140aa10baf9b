package figure

import (
	"math"
	"strconv"

	"github.com/dpsight/dpsight/schemas/units"
)

// unit is a binary unit of an axis.
type unit struct {
	bytes float64
	name  string
}

// unitOf returns the largest unit that is not above n.
func unitOf(n int64) unit {
	for _, u := range []unit{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if float64(n) >= u.bytes {
			return u
		}
	}
	return unit{1, "B"}
}

// ticks returns round values between low and high in a panel's unit, about most of them. In a unit of bytes they are
// whole numbers.
func (p *panel) ticks(most int) []float64 {
	if p.perByte == 0 {
		return nil
	}
	least := 0.0
	if p.unit.bytes == 1 {
		least = 1
	}
	return ticksBetween(float64(p.low)/p.unit.bytes, float64(p.high)/p.unit.bytes, most, least)
}

// ticksBetween returns round values between low and high, about most of them, at least least apart.
func ticksBetween(low, high float64, most int, least float64) []float64 {
	raw := (high - low) / float64(most)
	magnitude := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * magnitude
	for _, m := range []float64{1, 2, 2.5, 5} {
		if m*magnitude >= raw {
			step = m * magnitude
			break
		}
	}
	step = max(step, least)
	var out []float64
	for i := math.Ceil(low / step); i*step <= high*(1+1e-9); i++ {
		out = append(out, i*step)
	}
	return out
}

// tickText formats a tick's value without needless digits.
func tickText(v float64) string {
	s := strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
	for digits := range 7 {
		if f := strconv.FormatFloat(v, 'f', digits, 64); f == s {
			return units.Fixed(v, digits)
		}
	}
	return s
}

// number formats a size in the unit, without the unit's name. A size other than 0 never looks like 0.
func (u unit) number(bytes int64) string {
	digits := 2
	if u.bytes == 1 {
		digits = 0
	}
	v := float64(bytes) / u.bytes
	switch least := 0.005; {
	case v > 0 && v < least:
		return "<0.01"
	case v < 0 && v > -least:
		return ">−0.01"
	}
	return units.Fixed(v, digits)
}
