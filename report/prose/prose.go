package prose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

func Magnitude(n int64) int64 { return max(n, -n) }

func Below(part, whole float64) bool { return math.Abs(part) < negligible*math.Abs(whole) }

// SignedMiB formats a difference like [units.MiB], with its sign.
func SignedMiB(bytes int64) string {
	switch {
	case bytes < 0:
		return "−" + units.MiB(-bytes)
	case bytes > 0:
		return "+" + units.MiB(bytes)
	}
	return units.MiB(0)
}

// Times returns "once" or "3 times".
func Times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Comparison returns a sentence on two figures: "The peak of b is 3 MiB, 1 MiB (50 %) more than that of a (2 MiB)".
func Comparison(subject, verb string, to, from float64, object string, show func(float64) string) string {
	text := fmt.Sprintf("%s %s %s", subject, verb, show(to))
	switch {
	case to == from:
		return text + ", the same as " + object
	case to > from:
		return fmt.Sprintf("%s, %s%s more than %s (%s)", text, show(to-from), OfWhole(to-from, from), object,
			show(from))
	}
	return fmt.Sprintf("%s, %s%s less than %s (%s)", text, show(from-to), OfWhole(from-to, from), object, show(from))
}

// OfWhole formats a share in brackets, or returns "" if the whole is 0.
func OfWhole(part, whole float64) string {
	if whole == 0 {
		return ""
	}
	return " (" + Share(part, whole) + ")"
}

// A Term is one of the parts that a difference consists of.
type Term struct {
	Name  string
	Delta float64
	aside string
}

// Lacking appends a remark if one of the runs has nothing of the part.
func (t *Term) Lacking(from bool, fromLabel string, to bool, toLabel string) {
	switch {
	case from && !to:
		t.aside = " (" + fromLabel + " has none)"
	case to && !from:
		t.aside = " (" + toLabel + " has none)"
	}
}

// A Lead is the beginning of a sentence about the parts of a difference. Sum is used instead of Parts if the parts are
// so much larger than the difference that shares of it would mean nothing.
type Lead struct{ Parts, Sum string }

// Excess returns the beginning of a sentence on the difference of two figures.
func Excess(delta float64, to, from string, show func(float64) string) Lead {
	switch {
	case delta > 0:
		return Lead{fmt.Sprintf("Of the %s by which %s exceeds %s, ", show(delta), to, from),
			fmt.Sprintf("That %s exceeds %s by %s is the sum of ", to, from, show(delta))}
	case delta < 0:
		return Lead{fmt.Sprintf("Of the %s by which %s is below %s, ", show(-delta), to, from),
			fmt.Sprintf("That %s is below %s by %s is the sum of ", to, from, show(-delta))}
	}
	return Lead{Sum: fmt.Sprintf("That %s equals %s is the sum of ", to, from)}
}

// Account states in one sentence what a difference consists of: the parts with the difference's sign, the parts with
// the opposite sign, and the sum of the small parts. The figures sum to the difference. Account returns "" if no part
// differs.
func Account(delta float64, begin Lead, verb, others string, terms []Term, show func(float64) string) string {
	const most = 6
	terms = slices.DeleteFunc(slices.Clone(terms), func(t Term) bool { return t.Delta == 0 })
	if len(terms) == 0 {
		return ""
	}
	slices.SortStableFunc(terms, func(x, y Term) int { return cmp.Compare(math.Abs(y.Delta), math.Abs(x.Delta)) })
	largest := math.Abs(terms[0].Delta)
	sum := largest > 10*math.Abs(delta)
	var with, against []string
	var rest float64
	left := 0
	for i, t := range terms {
		figure, way := show(math.Abs(t.Delta)), " more of "
		if t.Delta < 0 {
			way = " less of "
		}
		if !sum {
			figure += OfWhole(math.Abs(t.Delta), math.Abs(delta))
		}
		switch {
		case i >= most || Below(t.Delta, max(math.Abs(delta), largest)):
			rest += t.Delta
			left++
		case sum:
			with = append(with, figure+way+t.Name+t.aside)
		case t.Delta > 0 != (delta > 0):
			against = append(against, figure+way+t.Name+t.aside)
		case len(with) == 0:
			with = append(with, figure+" "+verb+" "+t.Name+t.aside)
		default:
			with = append(with, figure+" "+t.Name+t.aside)
		}
	}
	var clauses []string
	if len(with) > 0 {
		clauses = append(clauses, JoinWords(with))
	}
	if len(against) > 0 {
		clauses = append(clauses, "against them stand "+JoinWords(against))
	}
	switch {
	case left == 1:
		clauses = append(clauses, fmt.Sprintf("one other of the %s comes to %s", others, Signed(rest, show)))
	case left > 1:
		clauses = append(clauses, fmt.Sprintf("%d other %s come to %s", left, others, Signed(rest, show)))
	}
	text := begin.Parts
	if sum {
		text = begin.Sum
	}
	return text + strings.Join(clauses, "; ")
}

// Words returns a category's name for use in prose.
func Words(c schemas.Category) string {
	return strings.ReplaceAll(strings.ReplaceAll(c, "per_sample", "per-sample"), "_", " ")
}

// JoinWords joins words: "a, b and c".
func JoinWords(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func Bytes(n float64) string { return units.MiB(int64(n)) }

// MS formats milliseconds as tables do.
func MS(ms float64) string {
	digits := 1
	if ms < 10 {
		digits = 3
	}
	return units.Fixed(ms, digits) + " ms"
}

// Signed formats a difference with its sign.
func Signed(x float64, show func(float64) string) string {
	text := show(math.Abs(x))
	switch small, isSmall := strings.CutPrefix(text, "<"); {
	case isSmall && x < 0:
		return ">−" + small
	case isSmall || x == 0:
		return text
	case x < 0:
		return "−" + text
	}
	return "+" + text
}

// Share formats a share in whole per cent. Only exactly 0 and 100 % print as 0 and 100 %.
func Share(part, whole float64) string {
	p := 100 * part / whole
	switch r := math.Round(p); {
	case r == p || r != 0 && r != 100:
		return units.Fixed(r, 0) + " %"
	case p < 0.1:
		return "<0.1 %"
	case p > 99.9 && p < 100:
		return ">99.9 %"
	case p > 100 && p < 100.1:
		return "100.1 %"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + " %"
}

// negligible is the share of a difference below which a sentence does not name a part.
const negligible = 0.01
