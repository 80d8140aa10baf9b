package analyze

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// NoteRepeats warns of runs that were taken out of more repeats of their experiments, of which around are the others: the time
// of the one that was taken may be that of none of the others, and a table of medians over all of them says something else.
func NoteRepeats(runs []*Summary, around []Summary) {
	times := map[string][]float64{} // of repeats, by what they repeat and their clock
	here := map[string]int{}        // how many of them are among runs
	add := func(o *Summary) string {
		if o.StepMS == nil || o.Status != schemas.StatusOK {
			return ""
		}
		key := o.StepMS.Clock + "\x00" + o.content()
		times[key] = append(times[key], o.StepMS.Median)
		return key
	}
	keys := make([]string, len(runs))
	for i, s := range runs {
		keys[i] = add(s)
		here[keys[i]]++
	}
	for i := range around {
		add(&around[i])
	}
	for i, s := range runs {
		if ms := times[keys[i]]; len(ms) > here[keys[i]] {
			s.Warnings = append(slices.Clone(s.Warnings), repeatsNote(here[keys[i]], ms, s.StepMS.Clock))
		}
	}
}

// repeatsNote says what all repeats take of which so many were taken.
func repeatsNote(taken int, times []float64, clock string) string {
	who := "one"
	if taken > 1 {
		who = fmt.Sprint(taken)
	}
	return fmt.Sprintf("%s of %d repeats in the store: their medians go from %s to %s, median %s", who, len(times), msText(slices.Min(times)), msText(slices.Max(times)),
		msText(summarise(times, OverRepeats, clock).Median))
}
