package findings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

const (
	unsteadyPercent = 20 // of the median step, between the tenth and the ninetieth percentile
	leastUnsteady   = 5  // steps
	leastCompared   = 3  // steps on each side of a comparison
)

// disturbances look at what else happened while steps were timed.
func disturbances(in *schemas.Tables, s *analyze.Summary) []Finding {
	t := timing.Of(in)
	if len(t.Steps) == 0 {
		return nil
	}
	var out []Finding
	slowed, sampled, reasons := timing.During(in, &t, timing.Throttling)
	if n := len(slowed); n > 0 {
		f := Finding{ID: Throttled}
		f.count("timed steps slowed down", n, "samples.parquet: throttle_reasons, within steps of steps.parquet")
		f.count("timed steps sampled", len(sampled), "the same")
		f.Sentence = fmt.Sprintf(
			"The GPU ran slower than its set clock in %d of %d timed steps that were sampled (%s).", n, len(sampled),
			strings.Join(schemas.ThrottleNames(reasons), ", "))
		f.Change = "compare only runs with the same limits and temperatures, or lock the clocks (nvidia-smi " +
			"--lock-gpu-clocks) below where the limit sets in"
		f.againstOthers(&t, slowed, sampled, "not slowed down")
		out = append(out, f)
	}
	shared, sampled, _ := timing.During(in, &t, func(m *schemas.Sample) (known, yes bool, mask int64) {
		return true, m.OtherProcesses > 0, 0
	})
	if n := len(shared); n > 0 {
		f := Finding{ID: OtherProcess}
		f.count("timed steps with another process", n,
			"samples.parquet: other_processes, within steps of steps.parquet")
		f.count("timed steps sampled", len(sampled), "the same")
		f.Sentence = fmt.Sprintf("Another process was on the GPU in %d of %d timed steps that were sampled.", n,
			len(sampled))
		f.Change = "time the run again on a GPU of its own"
		f.againstOthers(&t, shared, sampled, "without another process")
		out = append(out, f)
	}
	if i := in.Manifest.Isolation; i != nil && !i.Verified && i.Reason != "" {
		f := Finding{ID: NotIsolated}
		f.Sentence = "The GPU was not known to be free when the run began: " + i.Reason + "."
		if i.OtherProcesses != nil {
			f.count("other processes", *i.OtherProcesses, "run.json: isolation.other_processes")
		}
		if i.IdleBytes != nil {
			f.bytes("device memory in use before the run", *i.IdleBytes, "run.json: isolation.idle_bytes")
		}
		f.Change = "free the GPU before the run; dpsight collect waits for it"
		out = append(out, f)
	}
	if f := unsteady(&t); f != nil {
		out = append(out, *f)
	}
	return out
}

// againstOthers compares the medians of the steps listed and of the others that were sampled, where there are enough of
// both.
func (f *Finding) againstOthers(t *timing.Times, listed, sampled []int, others string) {
	var with, without []int64
	for _, i := range sampled {
		if _, ok := slices.BinarySearch(listed, i); ok { // both are in the order of steps
			with = append(with, t.NS(&t.Steps[i]))
		} else {
			without = append(without, t.NS(&t.Steps[i]))
		}
	}
	if len(with) < leastCompared || len(without) < leastCompared {
		if len(without) == 0 {
			f.Sentence += " All timed steps were alike in that, so what it cost cannot be told."
		}
		return
	}
	a, b := timing.IntervalOver(with, t.Clock), timing.IntervalOver(without, t.Clock)
	f.milliseconds("median of these", a.Median, "steps.parquet: "+clockColumn(t.Clock))
	f.milliseconds("median of the others", b.Median, "steps.parquet: "+clockColumn(t.Clock))
	f.ofStep(max(a.Median-b.Median, 0), a.Median)
	f.SavesMS, f.Assumption = new(max(a.Median-b.Median, 0)), "all else is equal in the steps "+others
	f.Sentence += fmt.Sprintf(" Their median is %s, that of the others %s.", prose.MS(a.Median), prose.MS(b.Median))
}

func clockColumn(clock string) string {
	if clock == timing.ClockGPU {
		return "gpu_ns"
	}
	return "wall_ns"
}

// unsteady looks at how far the timed steps lie apart.
func unsteady(t *timing.Times) *Finding {
	if len(t.Steps) < leastUnsteady {
		return nil
	}
	var ns []int64
	for i := range t.Steps {
		ns = append(ns, t.NS(&t.Steps[i]))
	}
	slices.Sort(ns)
	n := len(ns)
	low, high := float64(ns[n/10])/1e6, float64(ns[n-1-n/10])/1e6
	median := timing.IntervalOver(ns, t.Clock).Median
	if median <= 0 || high-low < unsteadyPercent/100.0*median {
		return nil
	}
	f := Finding{ID: UnsteadySteps}
	from := "steps.parquet: " + clockColumn(t.Clock) + " of the timed steps"
	f.ofStep(high-low, median)
	f.milliseconds("tenth percentile", low, from)
	f.milliseconds("median", median, from)
	f.milliseconds("ninetieth percentile", high, from)
	f.Sentence = fmt.Sprintf("Timed steps are not alike: of %d, four fifths take between %s and %s, %s of the median "+
		"(%s) apart.", n, prose.MS(low), prose.MS(high), prose.Share(high-low, median), prose.MS(median))
	f.Change = "time more steps, or look for what differs between them (batch sizes, data loading, evaluation)"
	return &f
}
