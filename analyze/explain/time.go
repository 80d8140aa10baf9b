package explain

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// TimePart is one part of a step's time, in both runs. A run's time is null if its step spends no time in the part.
type TimePart struct {
	FromMS  *float64 `json:"from_ms"`
	ToMS    *float64 `json:"to_ms"`
	DeltaMS float64  `json:"delta_ms"`
	// The times of Phases sum to the time of the part. Recompute has an entry of its own, since module times
	// distinguish it, although bare steps count it as backward.
	Phases []PhasePart `json:"phases"`
}

// ModuleTimePart is the time of one group of modules, whose paths differ only in the number of the layer. The time
// excludes the modules that they call.
type ModuleTimePart struct {
	Module     *string `json:"module"` // path with a star for the number of layers; null = not known
	Role       *string `json:"role"`   // null if unknown, or if the two runs differ
	Modules    int     `json:"modules"`
	FromHookMS float64 `json:"from_hook_ms"` // part of FromMS in a DP hook's norms and per-sample gradients
	ToHookMS   float64 `json:"to_hook_ms"`
	TimePart
}

// Title returns the heading under which the module is shown, as for bytes.
func (m *ModuleTimePart) Title() string { return m.Named().Title() }

// Named returns the modules without their times.
func (m *ModuleTimePart) Named() *ModulePart {
	return &ModulePart{Module: m.Module, Modules: m.Modules}
}

// ModuleTiming says from which rank and which steps the times of a run's modules come.
type ModuleTiming struct {
	Rank      int32 `json:"rank"`       // the slowest of the ranks
	Ranks     int   `json:"ranks"`      // number of ranks that have times of modules
	BareSteps int   `json:"bare_steps"` // number of bare steps to whose phases times are scaled
	// Repeats is the number of repeats whose median phase times are the scale, instead of the run's bare steps; 0 if
	// the run has no other repeats.
	Repeats            int     `json:"repeats"`
	InstrumentedSteps  int     `json:"instrumented_steps"`
	InstrumentedStepMS float64 `json:"instrumented_step_ms"` // median instrumented step
}

// timedParts are the parts of a step's time by module, from which an explanation's table is made.
type timedParts struct {
	ModuleTiming
	parts  []timedPart    // parts in the order of phases
	idling *timing.Remark // see [timing.ScaledTimes]
}

type timedPart struct {
	timing.Share
	of *schemas.Module // nil = outside all modules, or unknown module
}

// timeByModule takes the slowest rank, which mostly determines the run's step time. timeByModule returns nil if no rank
// has module times. timeByModule takes no mean over ranks, since a mean would match no real step.
func timeByModule(in *schemas.Tables) *timedParts {
	if !timing.HasModuleTimes(in) {
		return nil
	}
	var slowest *timing.ScaledTimes
	ranks := 0
	for rank, rows := range timing.ByRank(in.ModuleTimes) {
		s, _ := timing.ScaleTimes(in, rank, rows) // the step time already has these remarks, except the one on idling
		if len(s.Shares) == 0 {
			continue
		}
		ranks++
		if slowest == nil || *s.StepMS > *slowest.StepMS || *s.StepMS == *slowest.StepMS && s.Rank < slowest.Rank {
			slowest = &s
		}
	}
	if slowest == nil {
		return nil
	}
	modules := timing.ModulesOf(in, slowest.Rank)
	t := &timedParts{ModuleTiming: ModuleTiming{Rank: slowest.Rank, Ranks: ranks, BareSteps: slowest.BareSteps,
		InstrumentedSteps: slowest.InstrumentedSteps, InstrumentedStepMS: *slowest.InstrumentedStepMS},
		idling: slowest.Idling}
	for _, s := range slowest.Shares {
		t.parts = append(t.parts, timedPart{s, modules[s.Module]})
	}
	return t
}

// timeRow is a row of the module times while it is summed up.
type timeRow struct {
	ModuleTimePart
	paths  map[string]bool
	phases map[string]*[2]*float64 // times of each phase in the first and in the second run
}

func (r *timeRow) add(side int, p *timedPart) {
	if p.of != nil {
		if r.paths[p.of.Path] = true; r.Role != nil && *r.Role != p.of.Role {
			r.Role = nil
		}
	}
	if r.phases[p.Phase] == nil {
		r.phases[p.Phase] = &[2]*float64{}
	}
	timing.Plus(&r.phases[p.Phase][side], &p.MS)
	timing.Plus([]**float64{&r.FromMS, &r.ToMS}[side], &p.MS)
	if p.Hook {
		*[]*float64{&r.FromHookMS, &r.ToHookMS}[side] += p.MS
	}
}

func (r *timeRow) finish(order []string) ModuleTimePart {
	r.Modules, r.Phases = len(r.paths), []PhasePart{}
	for _, name := range order {
		if p := r.phases[name]; p != nil {
			r.Phases = append(r.Phases, PhasePart{name, p[0], p[1], new(timing.OrZero(p[1]) - timing.OrZero(p[0]))})
		}
	}
	r.DeltaMS = timing.OrZero(r.ToMS) - timing.OrZero(r.FromMS)
	return r.ModuleTimePart
}

// Add adds another part's times. A sum is unknown only if all its times are unknown.
func (t *TimePart) Add(from, to *float64, delta float64) {
	timing.Plus(&t.FromMS, from)
	timing.Plus(&t.ToMS, to)
	t.DeltaMS += delta
}

// explainModuleTimes lists the modules that take time in either run's step, the largest difference first, and sets the
// residue: the part of the steps' difference that no module explains. For explainModuleTimes, both runs must have
// module times, and step times on the same clock.
func (doc *Explanation) explainModuleTimes(from, to *Input) {
	for i, d := range []*Input{from, to} {
		if d.times != nil {
			doc.Runs[i].ModuleTiming = &d.times.ModuleTiming
		}
	}
	if doc.StepDeltaMS == nil || to.StepMS.Clock != timing.ClockGPU || from.times == nil || to.times == nil {
		return
	}
	f := grouping.FoldsOf(from.modules, to.modules)
	rows, outside := map[string]*timeRow{}, newTimeRow(nil, "")
	// The order of phases is the same as in the comparison of phases: first the phases of To, then the phases that only
	// From has.
	order := []string{}
	for side, d := range []*Input{from, to} {
		for i := range d.times.parts {
			p := &d.times.parts[i]
			if p.Module == 0 {
				outside.add(side, p)
				continue
			}
			title := ""
			if p.of != nil {
				title = f.Fold(grouping.ModulePath(p.of, 0))
			}
			if rows[title] == nil {
				rows[title] = newTimeRow(p.of, title)
			}
			rows[title].add(side, p)
		}
	}
	for _, d := range []*Input{to, from} {
		for _, p := range d.times.parts {
			if !slices.Contains(order, p.Phase) {
				order = append(order, p.Phase)
			}
		}
	}
	for _, r := range rows {
		doc.ModuleTimes = append(doc.ModuleTimes, r.finish(order))
	}
	slices.SortFunc(doc.ModuleTimes, func(a, b ModuleTimePart) int {
		return cmp.Or(cmp.Compare(math.Abs(b.DeltaMS), math.Abs(a.DeltaMS)), cmp.Compare(timing.OrZero(b.ToMS),
			timing.OrZero(a.ToMS)), strings.Compare(a.Title(), b.Title()))
	})
	for i, d := range []*Input{from, to} {
		doc.Idling[i] = d.times.idling
	}
	doc.OutsideModules = new(outside.finish(order).TimePart)
	residue := *doc.StepDeltaMS - doc.OutsideModules.DeltaMS
	for i := range doc.ModuleTimes {
		residue -= doc.ModuleTimes[i].DeltaMS
	}
	doc.ModuleResidueMS = &residue
}

func newTimeRow(m *schemas.Module, title string) *timeRow {
	r := &timeRow{paths: map[string]bool{}, phases: map[string]*[2]*float64{}}
	if m != nil {
		r.Module, r.Role = &title, &m.Role
	}
	return r
}

// Untimed returns the labels of the runs without times of modules.
func (doc *Explanation) Untimed() (labels []string) {
	for _, r := range doc.Runs {
		if r.ModuleTiming == nil {
			labels = append(labels, r.Label)
		}
	}
	return labels
}
