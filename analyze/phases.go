package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// PhasesSchema is the version of [PhasesDocument].
const PhasesSchema = "dpsight.phases/1"

// PhasesDocument is what "dpsight analyze phases --format json" prints.
type PhasesDocument struct {
	Schema string      `json:"schema"`
	Runs   []PhasesRun `json:"runs"`
}

// NewPhasesDocument makes the document of these runs.
func NewPhasesDocument(runs ...PhasesRun) PhasesDocument {
	if runs == nil {
		runs = []PhasesRun{}
	}
	distinguish(runs, func(r *PhasesRun) *Identity { return &r.Identity })
	return PhasesDocument{PhasesSchema, runs}
}

// PhasesRun is one run's phases, a row a device and phase, in the order in which they first came.
type PhasesRun struct {
	Identity
	Phases   []PhaseRow `json:"phases"`
	Warnings []string   `json:"warnings"`
}

// PhaseRow is one phase on one device. Bytes are null for a run without allocator events.
type PhaseRow struct {
	Device      string `json:"device"`
	Rank        int32  `json:"rank"`
	Phase       string `json:"phase"`
	Occurrences int64  `json:"occurrences"`
	// AllocatedBeginBytes, AllocatedEndBytes and PeakStep are of the occurrence with the highest peak, the first of
	// equals.
	AllocatedBeginBytes *int64 `json:"allocated_begin_bytes"`
	AllocatedEndBytes   *int64 `json:"allocated_end_bytes"`
	PeakBytes           *int64 `json:"peak_bytes"` // highest over all occurrences
	PeakStep            *int64 `json:"peak_step"`
	// LowestPeakBytes is the lowest of the occurrences' peaks: equal to PeakBytes where every step is alike.
	LowestPeakBytes *int64 `json:"lowest_peak_bytes"`
	// PeakPercent is PeakBytes in percent of the device's peak over the whole run.
	PeakPercent *float64 `json:"peak_percent"`
	// GPUMS and WallMS are a step's, over the bare steps after warm-up; null where unknown.
	GPUMS  *Interval `json:"gpu_ms"`
	WallMS *Interval `json:"wall_ms"`
	// StepPercent is the phase's time in percent of the step's, on the step's clock: GPU time where every step has it.
	StepPercent *float64 `json:"step_percent"`
}

// Phases tabulates the run's phases.
func Phases(in Input) PhasesRun {
	t := in.timed()
	run := in.phasesRun(&t)
	run.Warnings = append(run.Warnings, in.recomputing(run.Phases)...)
	return run
}

// recomputing says where the time of recompute is, a line a rank: only instrumented steps time it on the GPU, and the
// table's times are of bare ones.
func (in *Input) recomputing(rows []PhaseRow) (lines []string) {
	timed := slices.ContainsFunc(rows, func(r PhaseRow) bool { return r.GPUMS != nil })
	modules := byRank(in.ModuleTimes)
	for i := range rows {
		r := &rows[i]
		if r.Phase != schemas.PhaseRecompute || r.GPUMS != nil || !timed ||
			slices.ContainsFunc(rows[:i], func(o PhaseRow) bool {
				return o.Phase == r.Phase && o.Rank == r.Rank
			}) {
			continue
		}
		line := "recompute has no GPU ms of its own: in bare steps it is part of backward's"
		if s, _ := in.scaledTimes(r.Rank, modules[r.Rank]); s.BareSteps > 0 {
			ms, known := 0.0, false
			for _, x := range s.rows {
				if x.phase == schemas.PhaseRecompute {
					ms, known = ms+x.ms, true
				}
			}
			if known {
				line += fmt.Sprintf("; of that it is %.1f ms a step, by its share of instrumented steps (dpsight "+
					"analyze time)", ms)
			}
		}
		lines = append(lines, withRank(r.Rank, len(modules), line))
	}
	return lines
}

func (in *Input) phasesRun(t *times) PhasesRun {
	run := PhasesRun{Identity: in.identity(), Phases: []PhaseRow{}, Warnings: []string{}}
	type key struct {
		place
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
		k := key{place{f.Rank, f.Device}, f.Phase}
		if by[k] == nil {
			by[k] = &occurrences{first: f.BeginK}
			keys = append(keys, k)
		}
		by[k].list = append(by[k].list, f)
		by[k].first = min(by[k].first, f.BeginK)
	}
	slices.SortStableFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.device, b.device), cmp.Compare(by[a].first,
			by[b].first))
	})
	durations, known, step := t.phases(in), in.phasesWithBytes(), t.step()
	for _, k := range keys {
		row := PhaseRow{Device: k.place.String(), Rank: k.rank, Phase: k.phase, Occurrences: int64(len(by[k].list))}
		if v := in.verdict(k.place); v != nil && v.Events > 0 {
			if list := slices.DeleteFunc(slices.Clone(by[k].list),
				func(f *schemas.Phase) bool { return !known(f) }); len(list) > 0 {
				row.bytes(list)
				if peak := higher(v.Events, &v.PeakAllocatedBytes, v.TorchPeakAllocatedBytes); peak != nil {
					row.PeakPercent = percentOf(float64(*row.PeakBytes), float64(*peak))
				}
			}
		}
		row.GPUMS, row.WallMS = durations[k.phase].gpu, durations[k.phase].wall
		if ms := durations[k.phase].known(); ms != nil && step != nil {
			row.StepPercent = percentOf(ms.Median, step.Median)
		}
		run.Phases = append(run.Phases, row)
	}
	switch {
	case in.Report == nil:
		run.Warnings = append(run.Warnings, NotIngested)
	case len(run.Phases) > 0:
		run.Warnings = append(run.Warnings, t.warnings...)
	}
	return run
}

// phasesWithBytes tells the phases whose bytes are known. Those of a step without events are not, nor those that lie
// partly between two windows of recorded steps, or after the last: such rows have zeros, and no event to count from, as
// before the first event only rows with nothing allocated have.
func (in *Input) phasesWithBytes() func(*schemas.Phase) bool {
	type key struct {
		place
		step int64
	}
	without := map[key]bool{}
	for i := range in.Steps {
		if s := &in.Steps[i]; !s.Recorded {
			without[key{place{s.Rank, s.Device}, s.Step}] = true
		}
	}
	first := map[place]int64{} // mark at which the first phase with an event begins
	for i := range in.Phases {
		f := &in.Phases[i]
		p := place{f.Rank, f.Device}
		if k, ok := first[p]; f.EndSeq > 0 && (!ok || f.BeginK < k) {
			first[p] = f.BeginK
		}
	}
	return func(f *schemas.Phase) bool {
		p := place{f.Rank, f.Device}
		k, ok := first[p]
		return !without[key{p, f.Step}] && (f.EndSeq > 0 || !ok || f.BeginK <= k)
	}
}

func (r *PhaseRow) bytes(list []*schemas.Phase) {
	highest, lowest := list[0], list[0]
	for _, f := range list {
		if f.PeakBytes > highest.PeakBytes {
			highest = f
		}
		if f.PeakBytes < lowest.PeakBytes {
			lowest = f
		}
	}
	r.AllocatedBeginBytes, r.AllocatedEndBytes = new(highest.AllocatedBegin), new(highest.AllocatedEnd)
	r.PeakBytes, r.LowestPeakBytes = new(highest.PeakBytes), new(lowest.PeakBytes)
	if highest.Step >= 0 {
		r.PeakStep = new(highest.Step)
	}
}

// PhasePeaks is the highest allocated in each phase on the run's main device; phases without bytes are not in it.
func (s *Summary) PhasePeaks() map[string]int64 {
	peaks := map[string]int64{}
	device, rank := s.device()
	for i := range s.Phases.Phases {
		if r := &s.Phases.Phases[i]; r.Device == device && r.Rank == rank && r.PeakBytes != nil {
			peaks[r.Phase] = *r.PeakBytes
		}
	}
	return peaks
}
