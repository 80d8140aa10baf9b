package table

import (
	"fmt"
	"strconv"

	"github.com/dpsight/dpsight/schemas/units"
)

// absentText is shown for an unknown fact.
const absentText = "–"

// Absent is a cell for a fact that is not known.
func Absent() Cell { return Cell{Text: absentText} }

// Text is a cell of words.
func Text(s string) Cell { return Cell{s, s} }

// Count is a cell with a number of things.
func Count(n int64) Cell { return Cell{units.Grouped(strconv.FormatInt(n, 10)), n} }

// Bytes shows bytes in MiB and keeps bytes.
func Bytes(n int64) Cell { return Cell{units.InMiB(n), n} }

// DeltaBytes is [Bytes] with the difference's sign.
func DeltaBytes(n int64) Cell {
	t := units.InMiB(n)
	if n > 0 && t[0] != '<' {
		t = "+" + t
	}
	return Cell{t, n}
}

// Milliseconds shows and keeps milliseconds.
func Milliseconds(ms float64) Cell { return Cell{units.Fixed(ms, msDigits(ms)), ms} }

// DeltaMilliseconds is [Milliseconds] with the difference's sign.
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

// Ratio shows how many times as much: 1.07×.
func Ratio(r float64) Cell { return Cell{units.Fixed(r, 3) + "×", r} }

// Number shows a number with digits digits after the point.
func Number(x float64, digits int) Cell { return Cell{units.Fixed(x, digits), x} }

// Optional is cell(*v), or an absent cell.
func Optional[T any](v *T, cell func(T) Cell) Cell {
	if v == nil {
		return Absent()
	}
	return cell(*v)
}

// Size formats bytes in the largest binary unit that they fill: 61.25 GiB, 512 B.
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
