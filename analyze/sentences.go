package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// comparison sets two figures side by side: "The peak of b is 3 MiB, 1 MiB (50 %) more than that of a (2 MiB)".
func comparison(subject, verb string, to, from float64, object string, show func(float64) string) string {
	text := fmt.Sprintf("%s %s %s", subject, verb, show(to))
	switch {
	case to == from:
		return text + ", the same as " + object
	case to > from:
		return fmt.Sprintf("%s, %s%s more than %s (%s)", text, show(to-from), ofWhole(to-from, from), object,
			show(from))
	}
	return fmt.Sprintf("%s, %s%s less than %s (%s)", text, show(from-to), ofWhole(from-to, from), object, show(from))
}

// ofWhole is a share in brackets, empty where there is nothing to be a share of.
func ofWhole(part, whole float64) string {
	if whole == 0 {
		return ""
	}
	return " (" + shareText(part, whole) + ")"
}

// A term is one part of a difference.
type term struct {
	name  string
	delta float64
	aside string
}

// lacking notes that a run has nothing of the part.
func (t *term) lacking(from bool, fromLabel string, to bool, toLabel string) {
	switch {
	case from && !to:
		t.aside = " (" + fromLabel + " has none)"
	case to && !from:
		t.aside = " (" + toLabel + " has none)"
	}
}

// A lead begins a sentence on what a difference is made of: as parts of it, or as what sums to it where the parts are
// so much larger than the difference that shares of it would say nothing.
type lead struct{ parts, sum string }

// excess begins a sentence on the difference of two things.
func excess(delta float64, to, from string, show func(float64) string) lead {
	switch {
	case delta > 0:
		return lead{fmt.Sprintf("Of the %s by which %s exceeds %s, ", show(delta), to, from),
			fmt.Sprintf("That %s exceeds %s by %s is the sum of ", to, from, show(delta))}
	case delta < 0:
		return lead{fmt.Sprintf("Of the %s by which %s is below %s, ", show(-delta), to, from),
			fmt.Sprintf("That %s is below %s by %s is the sum of ", to, from, show(-delta))}
	}
	return lead{sum: fmt.Sprintf("That %s equals %s is the sum of ", to, from)}
}

// account says what a difference is made of, in one sentence whose figures sum to it: the parts of its own sign, those
// against it, and the sum of the small ones. It is empty where nothing differs.
func account(delta float64, begin lead, verb, others string, terms []term, show func(float64) string) string {
	const most = 6
	terms = slices.DeleteFunc(slices.Clone(terms), func(t term) bool { return t.delta == 0 })
	if len(terms) == 0 {
		return ""
	}
	slices.SortStableFunc(terms, func(x, y term) int { return cmp.Compare(math.Abs(y.delta), math.Abs(x.delta)) })
	largest := math.Abs(terms[0].delta)
	sum := largest > 10*math.Abs(delta)
	var with, against []string
	var rest float64
	left := 0
	for i, t := range terms {
		figure, way := show(math.Abs(t.delta)), " more of "
		if t.delta < 0 {
			way = " less of "
		}
		if !sum {
			figure += ofWhole(math.Abs(t.delta), math.Abs(delta))
		}
		switch {
		case i >= most || below(t.delta, max(math.Abs(delta), largest)):
			rest += t.delta
			left++
		case sum:
			with = append(with, figure+way+t.name+t.aside)
		case t.delta > 0 != (delta > 0):
			against = append(against, figure+way+t.name+t.aside)
		case len(with) == 0:
			with = append(with, figure+" "+verb+" "+t.name+t.aside)
		default:
			with = append(with, figure+" "+t.name+t.aside)
		}
	}
	var clauses []string
	if len(with) > 0 {
		clauses = append(clauses, joinWords(with))
	}
	if len(against) > 0 {
		clauses = append(clauses, "against them stand "+joinWords(against))
	}
	switch {
	case left == 1:
		clauses = append(clauses, fmt.Sprintf("one other of the %s comes to %s", others, signed(rest, show)))
	case left > 1:
		clauses = append(clauses, fmt.Sprintf("%d other %s come to %s", left, others, signed(rest, show)))
	}
	text := begin.parts
	if sum {
		text = begin.sum
	}
	return text + strings.Join(clauses, "; ")
}

// words is a category in prose.
func words(c schemas.Category) string {
	return strings.ReplaceAll(strings.ReplaceAll(c, "per_sample", "per-sample"), "_", " ")
}

// joinWords is "a, b and c".
func joinWords(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func bytesText(n float64) string { return mib(int64(n)) }

// msText shows milliseconds as tables do.
func msText(ms float64) string {
	digits := 1
	if ms < 10 {
		digits = 3
	}
	return thousands(strconv.FormatFloat(ms, 'f', digits, 64)) + " ms"
}

// signed shows a difference with its sign.
func signed(x float64, show func(float64) string) string {
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

// shareText is a whole number of percent; what is neither 0 nor 100 % never looks like it.
func shareText(part, whole float64) string {
	p := 100 * part / whole
	switch r := math.Round(p); {
	case r == p || r != 0 && r != 100:
		return thousands(strconv.FormatFloat(r, 'f', 0, 64)) + " %"
	case p < 0.1:
		return "<0.1 %"
	case p > 99.9 && p < 100:
		return ">99.9 %"
	case p > 100 && p < 100.1:
		return "100.1 %"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + " %"
}
