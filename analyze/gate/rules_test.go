package gate

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// If two runs have categories of different versions of the rules, a check skips thresholds on categories, even if the
// bytes are equal. The check still applies the threshold on the peak. For category:* a single row reports the skipped
// thresholds. An unknown version of the rules equals no known version, but equals another unknown version.
func TestCategoriesOfOtherRules(t *testing.T) {
	ruled := func(rules int, other int64) []schemas.Tables {
		in := fixture.Sized("ghost", map[schemas.Category]int64{schemas.Activations: base, schemas.Other: other})
		report := *in.Report
		report.Rules = rules
		in.Report = &report
		return []schemas.Tables{in}
	}
	for _, c := range []struct {
		before, after int
		comparable    bool
	}{{10, 10, true}, {9, 10, false}, {10, 9, false}, {0, 10, false}, {0, 0, true}} {
		r := check(t, ruled(c.before, base), ruled(c.after, base), "peak=1", "category:other=1", "category:*=1")
		x := &r.Experiments[0]
		verdicts := map[string]string{}
		for _, got := range x.Comparisons {
			verdicts[got.Metric] = got.Verdict
			if !c.comparable && got.Metric != "peak" && (got.Reason == nil || got.Reason.Why != NotOneRules ||
				got.Reason.Rules != [2]int{c.after, c.before} || got.Delta != nil) {
				t.Errorf("rules %d and %d: %s: %+v, reason %+v", c.before, c.after, got.Metric, got, got.Reason)
			}
		}
		said := slices.ContainsFunc(x.Cautions, func(k Caution) bool {
			return k.Kind == CautionRules && k.Rules == [2]int{c.after, c.before}
		})
		category, every := verdicts["category:other"], verdicts["category:*"]
		if verdicts["peak"] != VerdictOK || r.OK != c.comparable || said == c.comparable ||
			c.comparable && (category != VerdictOK || every != "") ||
			!c.comparable && (category != VerdictUnchecked || every != VerdictUnchecked || len(x.Comparisons) != 3) {
			t.Errorf("rules %d and %d: passes %t, %v, said %t", c.before, c.after, r.OK, verdicts, said)
		}
		grown := check(t, ruled(c.before, base), ruled(c.after, 2*base), "peak=1").Experiments[0]
		if grown.State != StateRegressed || (grown.Grown == schemas.Other) != c.comparable {
			t.Errorf("rules %d and %d: %s, by %q", c.before, c.after, grown.State, grown.Grown)
		}
	}
}
