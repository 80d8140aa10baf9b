package table

import (
	"fmt"
	"strconv"

	"github.com/dpsight/dpsight/schemas/units"
)

// absentText is shown in place of an unknown value.
const absentText = "–"

// Absent returns a cell for an unknown value.
func Absent() Cell { return Cell{Text: absentText} }

// Text returns a cell of words.
func Text(s string) Cell { return Cell{s, s} }

// Count returns a cell with a number of things.
func Count(n int64) Cell { return Cell{units.Grouped(strconv.FormatInt(n, 10)), n} }

// Bytes returns a cell that shows bytes in MiB. The cell's value is in bytes.
func Bytes(n int64) Cell { return Cell{units.InMiB(n), n} }

// DeltaBytes does what [Bytes] does for a difference, with its sign.
func DeltaBytes(n int64) Cell {
	t := units.InMiB(n)
	if n > 0 && t[0] != '<' {
		t = "+" + t
	}
	return Cell{t, n}
}

// Milliseconds returns a cell with milliseconds.
func Milliseconds(ms float64) Cell { return Cell{units.Fixed(ms, msDigits(ms)), ms} }

// DeltaMilliseconds does what [Milliseconds] does for a difference, with its sign.
func DeltaMilliseconds(ms float64) Cell {
	c := Milliseconds(ms)
	if ms > 0 {
		c.Text = "+" + c.Text
	}
	return c
}

func msDigits(ms float64) int {
	if ms < 10 && ms > -10 {
		return 3
	}
	return 1
}

// Ratio returns a cell with a ratio: 1.07×.
func Ratio(r float64) Cell { return Cell{units.Fixed(r, 3) + "×", r} }

// Number returns a cell with a number, with digits decimals.
func Number(x float64, digits int) Cell { return Cell{units.Fixed(x, digits), x} }

// Optional returns cell(*v), or an absent cell if v is nil.
func Optional[T any](v *T, cell func(T) Cell) Cell {
	if v == nil {
		return Absent()
	}
	return cell(*v)
}

// Size formats bytes in the largest binary unit that is not above them: 61.25 GiB, 512 B.
func Size(n int64) string {
	size := n
	if size < 0 {
		size = -size
	}
	for _, u := range []struct {
		shift uint
		name  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		// 1023.996 KiB would print as 1024.00
		if float64(size) >= float64(int64(1)<<u.shift)*0.99999 {
			return units.Fixed(float64(n)/float64(int64(1)<<u.shift), 2) + " " + u.name
		}
	}
	return fmt.Sprintf("%s B", units.Fixed(float64(n), 0))
}
