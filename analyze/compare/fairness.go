package compare

import (
	"encoding/json"
	"fmt"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

// unfair says why a run should not be compared with the baseline as they are.
func unfair(baseline, run *analyze.Summary) []string {
	var w []string
	if baseline.Source != run.Source {
		w = append(w, fmt.Sprintf("%s beside a baseline that is %s", run.Source, baseline.Source))
	}
	if baseline.Bare() != run.Bare() {
		which := "a bare run beside a full one"
		if baseline.Bare() {
			which = "a full run beside a bare one"
		}
		w = append(w, which+": only peak and time can be compared")
	}
	if baseline.Status != schemas.StatusOK {
		w = append(w, fmt.Sprintf("the baseline ended early (%s)", baseline.Status))
	}
	w = append(w, unlike(baseline, run)...)
	if baseline.Script != run.Script && baseline.Script != "" && run.Script != "" {
		w = append(w, fmt.Sprintf("script differs: %s, baseline %s", run.Script, baseline.Script))
	}
	w = append(w, argumentsDiffer(baseline, run)...)
	ours, theirs := run.Method(), baseline.Method()
	switch {
	case ours == theirs:
	case ours == "" || theirs == "":
		w = append(w, "only one of the two says which method it is: nothing says that they train the same model with "+
			"the same batch")
	case ours == identity.MethodNormOnly:
		w = append(w, "norm_only computes norms and nothing else: it clips nothing, adds no noise and is not "+
			"private; its overhead is not that of a DP-SGD step")
	case theirs == identity.MethodNormOnly:
		w = append(w, "the baseline (norm_only) computes norms and nothing else: it is no DP-SGD step")
	}
	w = append(w, poissonBeside(baseline, run)...)
	switch slowed, theirs := throttleWords(run.Throttled), throttleWords(baseline.Throttled); {
	case slowed != "" && theirs != "":
		w = append(w, fmt.Sprintf("the GPU was slowed down in %s, the baseline's in %s", slowed, theirs))
	case slowed != "":
		w = append(w, "the GPU was slowed down in "+slowed)
	case theirs != "":
		w = append(w, "the baseline's GPU was slowed down in "+theirs)
	}
	return append(w, keptGradients(baseline, run)...)
}

// poissonBeside says that only one of two runs draws batches of sizes of its own, unless their parameters have said so.
func poissonBeside(baseline, run *analyze.Summary) []string {
	if a, b := run.RunFact("poisson"), baseline.RunFact("poisson"); run.Poisson == baseline.Poisson || a != nil &&
		b != nil {
		return nil
	}
	who, other := "the run", "the baseline"
	if baseline.Poisson {
		who, other = other, who
	}
	return []string{fmt.Sprintf("Poisson sampling draws batches of other sizes at each step of %s and not of %s: its "+
		"peak is that of the largest batch drawn, and a larger batch is no overhead of the method", who, other)}
}

// unlike lists the conditions in which a run differs from the baseline, where both have them.
func unlike(baseline, run *analyze.Summary) []string {
	var w []string
	for _, f := range run.RunFacts {
		// What GPU and driver a prediction ran beside does not matter; that it is one is said already.
		if !f.Condition || baseline.Source != run.Source && (f.What == "GPU" || f.What == "driver") {
			continue
		}
		switch theirs := baseline.RunFact(f.What); {
		case theirs == nil || f.Equals(theirs):
		case f.Whole != "": // both are long, and alike but for one
			w = append(w, f.What+" differ: "+differences(f.Whole, theirs.Whole))
		default:
			w = append(w, fmt.Sprintf("%s differs: %s, baseline %s", f.What, f.Value, theirs.Value))
		}
	}
	return w
}

// keptGradients says that one of two runs keeps .grad between steps, and what the difference would be without. A loop
// that frees it between forward and backward keeps it too, and its peak in backward has none: nothing is said of what
// does not stand at the peak.
func keptGradients(baseline, run *analyze.Summary) []string {
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
	who := "the run keeps .grad between steps and the baseline frees it"
	if *b == 0 {
		who = "the baseline keeps .grad between steps and the run frees it"
	}
	if ours, theirs := freedPeak(run), freedPeak(baseline); ours != nil && theirs != nil && run.PeakBytes != nil &&
		baseline.PeakBytes != nil {
		freed, kept := prose.SignedMiB(*ours-*theirs), prose.SignedMiB(*run.PeakBytes-*baseline.PeakBytes)
		if freed == kept {
			return []string{who + ", which hardly moves the peaks: they differ by " + kept + " either way"}
		}
		return []string{fmt.Sprintf("%s: if both freed it, the peaks would differ by %s and not by %s", who, freed,
			kept)}
	}
	return []string{fmt.Sprintf("%s: up to %s of the difference is zero_grad's doing, not the method's", who,
		prose.MiB(max(*a, *b)))}
}

// keptAtPeak is at most what .grad kept between steps holds at the peak: without a replay all gradients there, some of
// which backward may have made anew. Nil where the peak is not broken down.
func keptAtPeak(s *analyze.Summary) *int64 {
	switch {
	case s.Kept != nil:
		return &s.Kept.AtPeakBytes
	case s.BrokenDown():
		return new(s.Main().Category(schemas.Gradients).HeldBytes)
	}
	return nil
}

// differences lists the keys in which two JSON objects differ, as "key=ours (baseline theirs)".
func differences(ours, theirs string) string {
	var a, b map[string]any
	if json.Unmarshal([]byte(ours), &a) != nil || json.Unmarshal([]byte(theirs), &b) != nil {
		return ours + ", baseline " + theirs
	}
	text := ""
	value := func(m map[string]any, key string) string {
		if v, ok := m[key]; ok && v != nil {
			return identity.TextOf(v)
		}
		return "unset"
	}
	for _, k := range identity.SortedKeys(a, b) {
		if x, y := value(a, k), value(b, k); x != y {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%s=%s (baseline %s)", k, x, y)
		}
	}
	return text
}
