package compare

import (
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// overheadSchema is the version of [OverheadDocument].
const overheadSchema = "dpsight.overhead/1"

// OverheadDocument is what "dpsight overhead --format json" prints.
type OverheadDocument struct {
	Schema   string        `json:"schema"`
	Baseline string        `json:"baseline"` // id of the baseline
	Runs     []OverheadRun `json:"runs"`
	// BaselineWarnings are the warnings about a baseline that is not among Runs. Report makes them from
	// BaselineRemarks.
	BaselineWarnings []string `json:"baseline_warnings"`
	BaselineRemarks  []Remark `json:"-"`
	// Cells has one entry for each experiment, over all its repeats.
	Cells []overheadCell `json:"cells"`
}

// overheadCell compares one experiment with its baseline.
type overheadCell struct {
	Label  string   `json:"label"`
	RunIDs []string `json:"run_ids"`
	// PeakLowBytes and PeakHighBytes are the range of the peak over the repeats. All other peaks of the cell come
	// from the repeat with the median peak.
	PeakLowBytes  *int64 `json:"peak_low_bytes"`
	PeakHighBytes *int64 `json:"peak_high_bytes"`
	OverheadRun
}

// OverheadRun is one run compared with the baseline. A delta is the run's value minus the baseline's. A ratio is the
// run's value divided by the baseline's. A run that did not end well has no deltas and no ratios.
type OverheadRun struct {
	identity.Identity
	Baseline       string   `json:"baseline"` // id of the run that this run is compared with
	PeakBytes      *int64   `json:"peak_bytes"`
	PeakDeltaBytes *int64   `json:"peak_delta_bytes"`
	PeakRatio      *float64 `json:"peak_ratio"`
	// PeakRatioLow and PeakRatioHigh are the bounds of the ratio if one of the two peaks is bounded; null otherwise.
	// The bounds of the delta follow the same rule.
	PeakRatioLow      *float64 `json:"peak_ratio_low,omitempty"`
	PeakRatioHigh     *float64 `json:"peak_ratio_high,omitempty"`
	PeakReservedBytes *int64   `json:"peak_reserved_bytes"`
	PeakDeviceBytes   *int64   `json:"peak_device_bytes"`
	// KeptGradientBytes are the bytes at the peak of .grad that the loop kept from the step before. FreedPeakBytes is
	// the peak that the run would have if the loop freed .grad. FreedDeltaBytes is the difference of the peaks if both
	// loops freed .grad. The three are null if neither run keeps .grad, or if the recording cannot say.
	KeptGradientBytes *int64           `json:"kept_gradient_bytes"`
	FreedPeakBytes    *int64           `json:"freed_peak_bytes"`
	FreedDeltaBytes   *int64           `json:"freed_delta_bytes"`
	StepMS            *timing.Interval `json:"step_ms"`
	StepDeltaMS       *float64         `json:"step_delta_ms"`
	StepRatio         *float64         `json:"step_ratio"`
	SamplesPerS       *float64         `json:"samples_per_s"`
	TokensPerS        *float64         `json:"tokens_per_s"`
	JoulesPerStep     *float64         `json:"joules_per_step"`
	JoulesPerSample   *float64         `json:"joules_per_sample"`
	Warnings          []string         `json:"warnings"` // sentences that report makes of Remarks
	Remarks           []Remark         `json:"-"`
	// The deltas of Categories sum to PeakDeltaBytes: each run's bytes are the bytes at its own peak. Categories is
	// empty if either run has no breakdown.
	Categories []CategoryDelta `json:"categories"`
	Phases     []PhaseDelta    `json:"phases"`
}

// CategoryDelta is one category's part in the difference of two peaks.
type CategoryDelta struct {
	Category   schemas.Category `json:"category"`
	Bytes      int64            `json:"bytes"` // bytes in this run
	DeltaBytes int64            `json:"delta_bytes"`
	// DeltaPercent is the difference in per cent of the baseline's peak, so the percentages of all categories sum to
	// the percentage of the peak. DeltaPercent is null if the baseline has no peak.
	DeltaPercent *float64 `json:"delta_percent"`
}

// PhaseDelta compares one phase with the baseline's phase of the same name. A phase that the baseline lacks adds all
// its time, and a phase that only the baseline has saves all its time. Memory of such phases is not compared.
type PhaseDelta struct {
	Phase   string   `json:"phase"`
	MS      *float64 `json:"ms"` // median of a step; null if the run has no such phase, or its time is unknown
	DeltaMS *float64 `json:"delta_ms"`
	// DeltaStepPercent is DeltaMS in per cent of the baseline's step, not of its phase. So phases that the baseline
	// lacks have a percentage too.
	DeltaStepPercent *float64 `json:"delta_step_percent"`
	PeakBytes        *int64   `json:"peak_bytes"`
	PeakDeltaBytes   *int64   `json:"peak_delta_bytes"`
	// PeakDeltaPercent is in per cent of the baseline's peak in the same phase, since peaks of phases do not add up.
	PeakDeltaPercent *float64 `json:"peak_delta_percent"`
}

// OverheadOf compares a run with a baseline. If the baseline is the run itself, the deltas are zero.
func OverheadOf(base, run *analyze.Summary) OverheadRun { return overheadOf(base, run, RemarksOf(run)) }

// overheadOf is [OverheadOf] with the remarks on the run given by the caller.
func overheadOf(base, run *analyze.Summary, remarks []Remark) OverheadRun {
	o := OverheadRun{Identity: run.Identity, Baseline: base.RunID, PeakBytes: run.PeakBytes,
		PeakReservedBytes: run.PeakReservedBytes, PeakDeviceBytes: run.PeakDeviceBytes,
		StepMS: run.StepMS, SamplesPerS: run.SamplesPerS, TokensPerS: run.TokensPerS, JoulesPerStep: run.JoulesPerStep,
		JoulesPerSample: run.JoulesPerSample,
		Warnings:        []string{}, Remarks: slices.Clone(remarks), Categories: []CategoryDelta{},
		Phases: []PhaseDelta{}}
	if base.PeakBytes != nil && run.PeakBytes != nil {
		delta := *run.PeakBytes - *base.PeakBytes
		o.PeakDeltaBytes = &delta
		o.PeakRatio = timing.Ratio(float64(*run.PeakBytes), float64(*base.PeakBytes))
		o.boundRatio(base, run)
	}
	o.freed(base, run)
	if base.StepMS != nil && run.StepMS != nil {
		if base.StepMS.Clock == run.StepMS.Clock {
			delta := run.StepMS.Median - base.StepMS.Median
			o.StepDeltaMS = &delta
			o.StepRatio = timing.Ratio(run.StepMS.Median, base.StepMS.Median)
		} else {
			o.Remarks = append(o.Remarks, Remark{Kind: RemarkTimes})
		}
	}
	if a, b := base.Main(), run.Main(); base.BrokenDown() && run.BrokenDown() {
		o.Categories = categoryDeltas(a, b)
		for i := range o.Categories {
			if c := &o.Categories[i]; base.PeakBytes != nil {
				c.DeltaPercent = timing.PercentOf(float64(c.DeltaBytes), float64(*base.PeakBytes))
			}
		}
	}
	o.Phases = phaseDeltas(base, run)
	if base.RunID != run.RunID {
		o.Remarks = append(o.Remarks, Unfair(base, run)...)
		if held := HooksInsteadOfAutograd(base, run); held != nil {
			o.Remarks = append(o.Remarks, Remark{Kind: RemarkHeldByHooks, Held: held})
		}
	}
	return o
}

// besideBaseline is [overheadOf] for a table of overheads. A run that did not end well may not have reached its
// experiment's peak, so the table shows its figures without deltas.
func besideBaseline(base, run *analyze.Summary, remarks []Remark) OverheadRun {
	o := overheadOf(base, run, remarks)
	if run.Status == schemas.StatusOK {
		return o
	}
	o.PeakRatioLow, o.PeakRatioHigh = nil, nil
	o.PeakDeltaBytes, o.PeakRatio, o.FreedDeltaBytes, o.StepDeltaMS, o.StepRatio = nil, nil, nil, nil, nil
	o.Categories = []CategoryDelta{}
	// Remove the remarks that would explain a difference, since there is none.
	o.Remarks = slices.DeleteFunc(o.Remarks, func(r Remark) bool {
		return r.Kind == RemarkKept || r.Kind == RemarkBoundedRatio
	})
	// Leave out phases that only the baseline has.
	o.Phases = slices.DeleteFunc(o.Phases, func(p PhaseDelta) bool { return p.PeakBytes == nil && p.MS == nil })
	for i := range o.Phases {
		p := &o.Phases[i]
		*p = PhaseDelta{Phase: p.Phase, MS: p.MS, PeakBytes: p.PeakBytes}
	}
	if o.PeakBytes != nil || o.StepMS != nil {
		o.Remarks = append(o.Remarks, Remark{Kind: RemarkEndedEarly})
	}
	return o
}

// boundRatio sets the bounds of the ratio of two peaks, if either peak is bounded.
func (o *OverheadRun) boundRatio(base, run *analyze.Summary) {
	if base.RunID == run.RunID || !base.Bounded() && !run.Bounded() {
		return
	}
	o.PeakRatioLow = timing.Ratio(float64(*run.PeakBytes), float64(*base.PeakAtMost()))
	o.PeakRatioHigh = timing.Ratio(float64(*run.PeakAtMost()), float64(*base.PeakBytes))
	if o.PeakRatioLow != nil && o.PeakRatioHigh != nil {
		o.Remarks = append(o.Remarks, Remark{Kind: RemarkBoundedRatio,
			Ratios: [2]float64{*o.PeakRatioLow, *o.PeakRatioHigh},
			Low:    *run.PeakBytes - *base.PeakAtMost(), High: *run.PeakAtMost() - *base.PeakBytes})
	}
}

// freed compares the peaks of the two runs as if both training loops freed .grad between steps.
func (o *OverheadRun) freed(base, run *analyze.Summary) {
	if k := run.Kept; k != nil {
		o.KeptGradientBytes, o.FreedPeakBytes = &k.AtPeakBytes, &k.FreedPeakBytes
	}
	ours, theirs := freedPeak(run), freedPeak(base)
	if ours == nil || theirs == nil || run.Kept == nil && base.Kept == nil {
		return
	}
	delta := *ours - *theirs
	o.FreedPeakBytes, o.FreedDeltaBytes = ours, &delta
}

// freedPeak returns the peak that a run would have if its loop freed .grad between steps; nil if unknown.
func freedPeak(s *analyze.Summary) *int64 {
	switch {
	case s.Kept != nil:
		return &s.Kept.FreedPeakBytes
	case s.KeptGradientBytes != nil && *s.KeptGradientBytes == 0:
		return s.PeakBytes
	}
	return nil
}

// categoryDeltas returns the difference in each category that either run's breakdown lists.
func categoryDeltas(base, run *memory.DeviceBreakdown) []CategoryDelta {
	out := []CategoryDelta{}
	listed := func(d *memory.DeviceBreakdown, c schemas.Category) bool {
		return slices.ContainsFunc(d.Categories, func(x memory.CategoryBytes) bool { return x.Category == c })
	}
	for _, c := range schemas.Categories {
		if listed(base, c) || listed(run, c) {
			b := run.Category(c).Bytes
			out = append(out, CategoryDelta{Category: c, Bytes: b, DeltaBytes: b - base.Category(c).Bytes})
		}
	}
	return out
}

// phaseDeltas compares the phases of a run and its baseline: first the run's phases on its main device in their order,
// then phases that only the baseline has.
func phaseDeltas(base, run *analyze.Summary) []PhaseDelta {
	rows := func(s *analyze.Summary) (list []analyze.PhaseRow) {
		device, rank := s.Device()
		for _, r := range s.Phases.Phases {
			if r.Device == device && r.Rank == rank {
				list = append(list, r)
			}
		}
		return list
	}
	find := func(list []analyze.PhaseRow, phase string) *analyze.PhaseRow {
		for i := range list {
			if list[i].Phase == phase {
				return &list[i]
			}
		}
		return nil
	}
	ours, theirs := rows(run), rows(base)
	out := []PhaseDelta{}
	for _, r := range ours {
		p := PhaseDelta{Phase: r.Phase, PeakBytes: r.PeakBytes}
		b := find(theirs, r.Phase)
		if b != nil && r.PeakBytes != nil && b.PeakBytes != nil {
			delta := *r.PeakBytes - *b.PeakBytes
			p.PeakDeltaBytes, p.PeakDeltaPercent = &delta, timing.PercentOf(float64(delta), float64(*b.PeakBytes))
		}
		p.times(base, run)
		out = append(out, p)
	}
	for _, r := range theirs {
		if find(ours, r.Phase) == nil {
			p := PhaseDelta{Phase: r.Phase}
			p.times(base, run)
			out = append(out, p)
		}
	}
	return out
}

// Phase returns the phase of that name; nil if neither the run nor its baseline has it.
func (o *OverheadRun) Phase(name string) *PhaseDelta {
	for i := range o.Phases {
		if o.Phases[i].Phase == name {
			return &o.Phases[i]
		}
	}
	return nil
}

// FamilyTime sums the times of a family's phases, and their differences from the baseline. So a method with two
// backward passes can be compared with a method that has one. All results are nil if the run has no such phase.
func (o *OverheadRun) FamilyTime(family string) (ms, delta, percent *float64) {
	unknown := false
	for i := range o.Phases {
		if p := &o.Phases[i]; memory.PhaseFamily(p.Phase) == family {
			timing.Plus(&ms, p.MS)
			timing.Plus(&delta, p.DeltaMS)
			timing.Plus(&percent, p.DeltaStepPercent)
			unknown = unknown || p.MS != nil && p.DeltaMS == nil
		}
	}
	if ms == nil || unknown {
		return ms, nil, nil
	}
	return ms, delta, percent
}

// FamilyPeak returns the highest allocated in a family's phases, and its difference from the baseline's highest. All
// results are nil if the cell or its baseline has no such phase.
func (c *Cell) FamilyPeak(family string) (peak, delta *int64, percent *float64) {
	highest := func(of *Cell) (bytes *int64) {
		for phase, b := range of.PhasePeaks() {
			if memory.PhaseFamily(phase) == family && (bytes == nil || b > *bytes) {
				bytes = &b
			}
		}
		return bytes
	}
	peak = highest(c)
	if peak == nil || c.Baseline == nil || c.Status != schemas.StatusOK {
		return peak, nil, nil
	}
	if base := highest(c.Baseline); base != nil {
		delta, percent = new(*peak-*base), timing.PercentOf(float64(*peak-*base), float64(*base))
	}
	return peak, delta, percent
}

// times fills in the phase's times in both runs, measured by the same clock.
func (p *PhaseDelta) times(base, run *analyze.Summary) {
	ours, theirs := run.PhaseTimes[p.Phase], base.PhaseTimes[p.Phase]
	after := 0.0
	// A run without a wall time for the phase lacks the phase itself, since every timed phase has a wall time.
	if k := ours.Known(); k != nil {
		p.MS, after = &k.Median, k.Median
	} else if ours.Wall != nil || run.StepMS == nil || len(run.PhaseTimes) == 0 || theirs.Known() == nil {
		return
	}
	if base.StepMS == nil || run.StepMS == nil || base.StepMS.Clock != run.StepMS.Clock {
		return
	}
	before := 0.0
	if theirs.Wall != nil {
		k := theirs.Known()
		if k == nil {
			return
		}
		before = k.Median
	}
	delta := after - before
	p.DeltaMS, p.DeltaStepPercent = &delta, timing.PercentOf(delta, base.StepMS.Median)
}

// DefaultBaseline returns the index of the default baseline. Among the runs that ended well, the default is the first
// run whose parameters contain all of match (a suite's baseline), else the first whose method is vanilla, else the
// first. Of runs that rank the same so far, a full run takes precedence over a bare one. DefaultBaseline returns -1 if
// no run ended well.
func DefaultBaseline(runs []analyze.Summary, match map[string]any) int {
	best, bestRank := -1, 0
	for i := range runs {
		r := &runs[i]
		if r.Status != schemas.StatusOK || r.PeakBytes == nil {
			continue
		}
		rank := 1
		if r.Params["method"] == "vanilla" {
			rank += 2
		}
		if holds(r.Params, match) {
			rank += 4
		}
		if !r.Bare() {
			rank++
		}
		if rank > bestRank {
			best, bestRank = i, rank
		}
	}
	return best
}

// holds reports whether params contains all of match, compared as text, since JSON has a single number type.
func holds(params, match map[string]any) bool {
	for k, v := range match {
		if have, ok := params[k]; !ok || identity.TextOf(have) != identity.TextOf(v) {
			return false
		}
	}
	return len(match) > 0
}

// HeldByHooks says how many bytes of activations hooks hold at a run's peak in place of autograd, compared with the
// baseline's peak.
type HeldByHooks struct {
	Activations     int64 // bytes of activations that autograd holds less than in the baseline
	HookActivations int64 // bytes of activations that hooks hold more than in the baseline
}

// HooksInsteadOfAutograd reports how many more bytes of activations hooks hold, and how many fewer autograd holds, than
// in the baseline. If a method computes parameter gradients without autograd, autograd saves no inputs for them, but
// the method's hooks do. HooksInsteadOfAutograd returns nil unless hooks hold more and autograd less, or if a peak is
// not broken down.
func HooksInsteadOfAutograd(base, run *analyze.Summary) *HeldByHooks {
	if !base.BrokenDown() || !run.BrokenDown() {
		return nil
	}
	delta := func(c schemas.Category) int64 { return run.Main().Category(c).Bytes - base.Main().Category(c).Bytes }
	held := HeldByHooks{Activations: -delta(schemas.Activations), HookActivations: delta(schemas.HookActivations)}
	if held.HookActivations <= 0 || held.Activations <= 0 {
		return nil
	}
	return &held
}
