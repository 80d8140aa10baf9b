package analyze

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// PhasesTables lists the tables that phases are tabulated from.
const PhasesTables = schemas.WantTimes | schemas.WantModuleTimes

// PhasesSchema is the version of [PhasesDocument].
const PhasesSchema = "dpsight.phases/1"

// PhasesDocument is what "dpsight phases --format json" prints.
type PhasesDocument struct {
	Schema string      `json:"schema"`
	Runs   []PhasesRun `json:"runs"`
}

// NewPhasesDocument makes the document of these runs.
func NewPhasesDocument(runs ...PhasesRun) PhasesDocument {
	if runs == nil {
		runs = []PhasesRun{}
	}
	identity.Distinguish(runs, func(r *PhasesRun) *identity.Identity { return &r.Identity })
	return PhasesDocument{PhasesSchema, runs}
}

// PhasesRun has one run's phases: one row for each device and phase, in the order in which the phases first occurred.
type PhasesRun struct {
	identity.Identity
	Phases   []PhaseRow `json:"phases"`
	Warnings []string   `json:"warnings"`
	Remarks  []Remark   `json:"-"`
}

// PhaseRow is one phase on one device. Bytes are null for a run without allocator events.
type PhaseRow struct {
	Device      string `json:"device"`
	Rank        int32  `json:"rank"`
	Phase       string `json:"phase"`
	Occurrences int64  `json:"occurrences"`
	// AllocatedBeginBytes, AllocatedEndBytes and PeakStep belong to the occurrence of the phase with the highest peak.
	// Of equal peaks the first counts.
	AllocatedBeginBytes *int64 `json:"allocated_begin_bytes"`
	AllocatedEndBytes   *int64 `json:"allocated_end_bytes"`
	PeakBytes           *int64 `json:"peak_bytes"` // highest allocated over all occurrences of the phase
	PeakStep            *int64 `json:"peak_step"`
	// LowestPeakBytes is the lowest peak of the phase over all its occurrences. LowestPeakBytes equals PeakBytes if all
	// steps are alike.
	LowestPeakBytes *int64 `json:"lowest_peak_bytes"`
	// PeakPercent is PeakBytes in per cent of the device's peak over the whole run.
	PeakPercent *float64 `json:"peak_percent"`
	// GPUMS and WallMS are the phase's times per step, over the bare steps after warm-up; null if unknown.
	GPUMS  *timing.Interval `json:"gpu_ms"`
	WallMS *timing.Interval `json:"wall_ms"`
	// StepPercent is the phase's median time in per cent of the step's median time. The clock of the steps measures
	// both medians: GPU time if every step has a GPU time, else wall time.
	StepPercent *float64 `json:"step_percent"`
}

// Phases tabulates the run's phases.
func Phases(in schemas.Tables) PhasesRun {
	t := timing.Of(&in)
	run := phasesRun(&in, &t)
	run.Remarks = append(run.Remarks, goneRemarks(in.Report)...)
	run.Remarks = append(run.Remarks, recomputing(&in, run.Phases)...)
	return run
}

// recomputing returns one remark for each rank on the time of recompute. Only instrumented steps time recompute
// separately on the GPU, while the table's times come from bare steps.
func recomputing(in *schemas.Tables, rows []PhaseRow) (out []Remark) {
	timed := slices.ContainsFunc(rows, func(r PhaseRow) bool { return r.GPUMS != nil })
	modules := timing.ByRank(in.ModuleTimes)
	for i := range rows {
		r := &rows[i]
		if r.Phase != schemas.PhaseRecompute || r.GPUMS != nil || !timed ||
			slices.ContainsFunc(rows[:i], func(o PhaseRow) bool {
				return o.Phase == r.Phase && o.Rank == r.Rank
			}) {
			continue
		}
		remark := Remark{Kind: RemarkRecompute, Rank: oneOf(len(modules), r.Rank)}
		if s, _ := timing.ScaleTimes(in, r.Rank, modules[r.Rank]); s.BareSteps > 0 {
			for _, x := range s.Shares {
				if x.Phase == schemas.PhaseRecompute {
					remark.MS = new(timing.OrZero(remark.MS) + x.MS)
				}
			}
		}
		out = append(out, remark)
	}
	return out
}

func phasesRun(in *schemas.Tables, t *timing.Times) PhasesRun {
	run := PhasesRun{Identity: identity.Of(in), Phases: []PhaseRow{}, Warnings: []string{}}
	type key struct {
		identity.Place
		phase string
	}
	type occurrences struct {
		list  []*schemas.Phase
		first int64
	}
	by := map[key]*occurrences{}
	var keys []key
	for i := range in.Phases {
		f := &in.Phases[i]
		k := key{identity.Place{Rank: f.Rank, Device: f.Device}, f.Phase}
		if by[k] == nil {
			by[k] = &occurrences{first: f.BeginK}
			keys = append(keys, k)
		}
		by[k].list = append(by[k].list, f)
		by[k].first = min(by[k].first, f.BeginK)
	}
	slices.SortStableFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Device, b.Device), cmp.Compare(by[a].first,
			by[b].first))
	})
	durations, known, step := t.Phases(in), memory.PhasesWithBytes(in), t.Step()
	for _, k := range keys {
		row := PhaseRow{Device: k.Place.String(), Rank: k.Rank, Phase: k.phase, Occurrences: int64(len(by[k].list))}
		if v := identity.Verdict(in, k.Place); v != nil && (v.Events > 0 || in.Manifest.FiguresOnly()) {
			if list := slices.DeleteFunc(slices.Clone(by[k].list),
				func(f *schemas.Phase) bool { return !known(f) }); len(list) > 0 {
				row.bytes(list, in.Manifest.FiguresOnly())
				if peak := identity.Higher(v.Events, &v.PeakAllocatedBytes, v.TorchPeakAllocatedBytes); peak != nil &&
					row.PeakBytes != nil {
					row.PeakPercent = timing.PercentOf(float64(*row.PeakBytes), float64(*peak))
				}
			}
		}
		row.GPUMS, row.WallMS = durations[k.phase].GPU, durations[k.phase].Wall
		if ms := durations[k.phase].Known(); ms != nil && step != nil {
			row.StepPercent = timing.PercentOf(ms.Median, step.Median)
		}
		run.Phases = append(run.Phases, row)
	}
	switch {
	case in.Report == nil:
		run.Remarks = append(run.Remarks, Remark{Kind: RemarkNotIngested})
	case len(run.Phases) > 0:
		run.Remarks = append(run.Remarks, timeRemarks(t.Remarks)...)
		run.Remarks = append(run.Remarks, boundedRemarks(&run.Identity)...)
	}
	return run
}

// bytes sets a row's bytes from the occurrences of its phase. Only in an imported file of figures may a listed
// occurrence lack bytes.
func (r *PhaseRow) bytes(list []*schemas.Phase, figures bool) {
	known := func(v *int64) *int64 {
		if v == nil && !figures {
			return new(int64(0))
		}
		return v
	}
	highest, lowest := list[0], list[0]
	for _, f := range list {
		peak := schemas.OrZero(f.PeakBytes)
		if peak > schemas.OrZero(highest.PeakBytes) || highest.PeakBytes == nil && f.PeakBytes != nil {
			highest = f
		}
		if lowest.PeakBytes != nil && (f.PeakBytes == nil || peak < *lowest.PeakBytes) {
			lowest = f
		}
	}
	r.AllocatedBeginBytes, r.AllocatedEndBytes = known(highest.AllocatedBegin), known(highest.AllocatedEnd)
	r.PeakBytes, r.LowestPeakBytes = known(highest.PeakBytes), known(lowest.PeakBytes)
	if highest.Step >= 0 && r.PeakBytes != nil {
		r.PeakStep = new(highest.Step)
	}
}

// PhasePeaks returns the highest allocated in each phase on the run's main device. PhasePeaks leaves out phases whose
// bytes are not known.
func (s *Summary) PhasePeaks() map[string]int64 {
	peaks := map[string]int64{}
	device, rank := s.Device()
	for i := range s.Phases.Phases {
		if r := &s.Phases.Phases[i]; r.Device == device && r.Rank == rank && r.PeakBytes != nil {
			peaks[r.Phase] = *r.PeakBytes
		}
	}
	return peaks
}
