package compare

import (
	"encoding/json"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Unfair returns the reasons why comparing a run with the baseline is not fair.
func Unfair(baseline, run *analyze.Summary) (out []Remark) {
	say := func(r Remark) { out = append(out, r) }
	if baseline.Source != run.Source {
		say(Remark{Kind: RemarkSource, Now: run.Source, Baseline: baseline.Source})
	}
	if baseline.Bare() != run.Bare() {
		say(Remark{Kind: RemarkBare, OfBaseline: baseline.Bare()})
	}
	if baseline.Status != schemas.StatusOK {
		say(Remark{Kind: RemarkBaseEnded, Baseline: baseline.Status})
	}
	out = append(out, unlike(baseline, run)...)
	if baseline.Script != run.Script && baseline.Script != "" && run.Script != "" {
		say(Remark{Kind: RemarkFact, What: "script", Now: run.Script, Baseline: baseline.Script})
	}
	out = append(out, otherOrigin(baseline, run)...)
	out = append(out, argumentsDiffer(baseline, run)...)
	ours, theirs := run.Method(), baseline.Method()
	switch {
	case ours == theirs:
	case ours == "" || theirs == "":
		say(Remark{Kind: RemarkOneMethod})
	case ours == identity.MethodNormOnly || theirs == identity.MethodNormOnly:
		say(Remark{Kind: RemarkNormOnly, OfBaseline: theirs == identity.MethodNormOnly})
	}
	out = append(out, poissonBeside(baseline, run)...)
	if run.Throttled.Slowed > 0 || baseline.Throttled.Slowed > 0 {
		say(Remark{Kind: RemarkThrottled, Throttled: [2]timing.Throttle{run.Throttled, baseline.Throttled}})
	}
	return append(out, keptGradients(baseline, run)...)
}

// poissonBeside returns a remark if only one of two runs draws batches of random sizes and their parameters do not show
// it.
func poissonBeside(baseline, run *analyze.Summary) []Remark {
	if a, b := run.RunFact("poisson"), baseline.RunFact("poisson"); run.Poisson == baseline.Poisson || a != nil &&
		b != nil {
		return nil
	}
	return []Remark{{Kind: RemarkPoisson, OfBaseline: baseline.Poisson}}
}

// unlike lists the conditions that both a run and the baseline have and in which they differ.
func unlike(baseline, run *analyze.Summary) (out []Remark) {
	for _, f := range run.RunFacts {
		// A prediction's own GPU and driver do not matter. Another remark already says that a run is a prediction.
		if !f.Condition || baseline.Source != run.Source && (f.What == "GPU" || f.What == "driver") {
			continue
		}
		switch theirs := baseline.RunFact(f.What); {
		case theirs == nil || f.Equals(theirs):
		case f.Whole != "": // both values are long and differ in one entry
			out = append(out, settingsDiffer(f.What, f.Whole, theirs.Whole))
		default:
			out = append(out, Remark{Kind: RemarkFact, What: f.What, Now: f.Value, Baseline: theirs.Value})
		}
	}
	return out
}

// keptGradients returns a remark if only one of two runs keeps .grad between steps. The remark has the difference of
// the peaks if both loops freed .grad. A loop that frees .grad between forward and backward keeps it until then, but
// the peak in backward does not contain it. The remark covers only gradients at the peak.
func keptGradients(baseline, run *analyze.Summary) []Remark {
	a, b := baseline.KeptGradientBytes, run.KeptGradientBytes
	if a == nil || b == nil || (*a == 0) == (*b == 0) {
		return nil
	}
	keeper := run
	if *b == 0 {
		keeper = baseline
	}
	if at := keptAtPeak(keeper); at != nil && *at == 0 {
		return nil
	}
	r := Remark{Kind: RemarkKept, OfBaseline: *b == 0, High: max(*a, *b)}
	if ours, theirs := freedPeak(run), freedPeak(baseline); ours != nil && theirs != nil && run.PeakBytes != nil &&
		baseline.PeakBytes != nil {
		r.Freed, r.Kept = new(*ours-*theirs), new(*run.PeakBytes-*baseline.PeakBytes)
	}
	return []Remark{r}
}

// keptAtPeak returns an upper bound for the bytes at the peak of .grad kept from the step before. If the kept bytes are
// unknown, the bound is all gradients at the peak, although backward may have made some of them again. keptAtPeak
// returns nil if the peak is not broken down.
func keptAtPeak(s *analyze.Summary) *int64 {
	switch {
	case s.Kept != nil:
		return &s.Kept.AtPeakBytes
	case s.BrokenDown():
		return new(s.Main().Category(schemas.Gradients).HeldBytes)
	}
	return nil
}

// settingsDiffer returns a remark on the keys in which two JSON objects differ.
func settingsDiffer(what, ours, theirs string) Remark {
	r := Remark{Kind: RemarkSettings, What: what}
	var a, b map[string]any
	if json.Unmarshal([]byte(ours), &a) != nil || json.Unmarshal([]byte(theirs), &b) != nil {
		r.Now, r.Baseline = ours, theirs
		return r
	}
	value := func(m map[string]any, key string) string {
		if v, ok := m[key]; ok && v != nil {
			return identity.TextOf(v)
		}
		return "unset"
	}
	for _, k := range identity.SortedKeys(a, b) {
		if x, y := value(a, k), value(b, k); x != y {
			r.Settings = append(r.Settings, Setting{k, x, y})
		}
	}
	return r
}
