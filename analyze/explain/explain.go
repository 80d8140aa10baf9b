package explain

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// Tables lists the tables that an explanation needs.
const Tables = analyze.SummaryTables | schemas.WantDetail | schemas.WantModuleTimes

// Schema is the version of the document that "dpsight explain --format json" prints.
const Schema = "dpsight.explain/1"

// Explanation has the figures that explain why one run's peak is above another's, and why its step is longer. Package
// report puts them into words.
type Explanation struct {
	Differences
	Runs  [2]Run   // the two runs: from, to
	Kept  [2]int64 // bytes at each run's peak of gradients that zero_grad kept and that nothing had written to since
	Hooks [2]*memory.SharedActivation
	// FreedDeltaBytes is the difference of the peaks if both loops freed .grad; nil if unknown.
	FreedDeltaBytes *int64
	// HeldByHooks are the activations that autograd holds at From's peak and hooks hold at To's peak; nil if none moved
	// in this way.
	HeldByHooks *compare.HeldByHooks
	Idling      [2]*timing.Remark // a remark on each run whose times by module are compared, see [timing.ScaledTimes]
	Said        []compare.Said    // remarks on the runs and on their comparison
}

// Differences has the parts of the difference between two runs, in the order of the JSON document. A difference is To's
// value minus From's.
type Differences struct {
	Schema         string `json:"schema"`
	From           string `json:"from"` // id of the first run
	To             string `json:"to"`   // id of the second run
	PeakDeltaBytes *int64 `json:"peak_delta_bytes"`
	// The deltas of Categories sum to PeakDeltaBytes. Each run's bytes are counted at its own peak. Categories is empty
	// if either peak is not broken down.
	Categories []CategoryPart `json:"categories"`
	// The deltas of MemoryPhases sum to PeakDeltaBytes too. MemoryPhases is empty if either run has no phases.
	MemoryPhases []BirthPart `json:"memory_phases"`
	// The deltas of Stacks sum to PeakDeltaBytes too. Stacks is empty if either run has no stacks.
	Stacks      []StackPart `json:"stacks"`
	StepDeltaMS *float64    `json:"step_delta_ms"` // difference of the median steps in ms; null if they cannot be compared
	// The deltas of Phases and PhaseResidueMS sum to StepDeltaMS. PhaseResidueMS need not be 0, since a median of sums
	// is not the sum of medians.
	Phases         []PhasePart `json:"phases"`
	PhaseResidueMS *float64    `json:"phase_residue_ms"`
	// The deltas of ModuleTimes, OutsideModules and ModuleResidueMS also sum to StepDeltaMS. ModuleResidueMS consists
	// of PhaseResidueMS and of the time that either run could not attribute. All three are empty or null if either run
	// has no module times.
	ModuleTimes     []ModuleTimePart `json:"module_times"`    // parts by module, the largest difference first
	OutsideModules  *TimePart        `json:"outside_modules"` // time inside no module's call: the loss, the optimizer
	ModuleResidueMS *float64         `json:"module_residue_ms"`
}

// Run is one side of the comparison.
type Run struct {
	identity.Identity
	Label     string           `json:"label"` // name under which sentences and tables show the run
	PeakBytes *int64           `json:"peak_bytes"`
	Device    *string          `json:"device"` // device with the run's highest peak
	At        *memory.Moment   `json:"at"`     // moment of the peak
	StepMS    *timing.Interval `json:"step_ms"`
	// Modules says how the modules of the bytes at the peak are known; null if the peak is not broken down.
	Modules *memory.ModuleBytes `json:"modules"`
	// ModuleTiming says how the times of modules are known; null if the run has no times of modules.
	ModuleTiming *ModuleTiming        `json:"module_timing"`
	Conservation *memory.Conservation `json:"conservation"`
}

// CategoryPart is one category's part in the difference of the peaks.
type CategoryPart struct {
	Category     schemas.Category `json:"category"`
	FromBytes    int64            `json:"from_bytes"`
	ToBytes      int64            `json:"to_bytes"`
	DeltaBytes   int64            `json:"delta_bytes"`
	FromEvidence memory.Evidence  `json:"from_evidence"` // evidence for FromBytes
	ToEvidence   memory.Evidence  `json:"to_evidence"`
	Modules      []ModulePart     `json:"modules"` // parts that sum to the category, the largest difference first
	// Phases divides the category by the phase in which blocks were allocated. Phases is empty if MemoryPhases is
	// empty.
	Phases []BirthPart `json:"phases"`
}

// ModulePart is the part of one group of modules: modules whose paths differ only in the number of the layer.
type ModulePart struct {
	// path with a star for the layers' number, or [schemas.SharedByModules]; null = not known
	Module     *string `json:"module"`
	Role       *string `json:"role"`    // null if unknown, or if the two runs differ
	Modules    int     `json:"modules"` // number of modules in the part; 0 if the part is not about modules
	FromBytes  int64   `json:"from_bytes"`
	ToBytes    int64   `json:"to_bytes"`
	DeltaBytes int64   `json:"delta_bytes"`
}

// PhasePart is one phase's part in the difference of the steps. A phase that a run does not have takes no time in
// that run.
type PhasePart struct {
	Phase   string   `json:"phase"`
	FromMS  *float64 `json:"from_ms"` // median time in a step
	ToMS    *float64 `json:"to_ms"`
	DeltaMS *float64 `json:"delta_ms"`
}

// An Input is what [Explain] needs of one run, so that the tables of both runs need not be in memory at once.
type Input struct {
	analyze.Summary
	As      string // name for the run; empty = its own name, with what distinguishes it
	modules []schemas.Module
	parts   []peakPart
	known   memory.ModuleBytes
	born    bool             // the phases in which blocks were born are known
	stacks  map[string]int64 // stacks by text; nil = none were recorded
	times   *timedParts      // nil = modules were not timed
}

// peakPart has the bytes at the peak of one category, one module and one phase of allocation. The module is nil if it
// is not known.
type peakPart struct {
	peakKey
	bytes int64
}

type peakKey struct {
	place  int
	module *schemas.Module
	phase  string
}

// NewInput reduces one run to what [Explain] needs. NewInput reads the tables in [Tables].
func NewInput(in schemas.Tables) Input {
	d := Input{Summary: analyze.Summarize(in), modules: in.Modules, times: timeByModule(&in)}
	main := d.Main()
	if main == nil {
		return d
	}
	p := memory.PlaceOf(&in, main)
	l, index := memory.NewLedger(&in, p), memory.NewModuleIndex(&in, p.Rank)
	phase := grouping.NewKeyer(&in, grouping.DimensionPhase, &grouping.By{}, p)
	for name := range phase.Phases {
		d.born = d.born || name != schemas.PhaseBetween // an imported file has only such phases
	}
	bytes := map[peakKey]int64{}
	for i, a := range l.Allocs {
		if !a.LiveAt(main.At.Event) {
			continue
		}
		place, _ := l.Category(i, main.At.Event)
		m, known := index.Module(l, i, main.At.Event, &d.known)
		*known += a.BlockBytes
		born := phase.Key(a, place, nil, nil).Text
		bytes[peakKey{place, m, born}] += a.RequestedBytes
		bytes[peakKey{memory.SlackPlace, m, born}] += a.BlockBytes - a.RequestedBytes
	}
	d.stacks = stacksAt(&in, p, l, main.At.Event)
	for k, n := range bytes {
		if n != 0 {
			d.parts = append(d.parts, peakPart{k, n})
		}
	}
	return d
}

// Explain compares two runs. Explain returns an error if the runs have neither peaks nor steps to compare.
func Explain(from, to Input) (Explanation, error) {
	o := compare.OverheadOf(&from.Summary, &to.Summary)
	doc := Explanation{Differences: Differences{Schema: Schema, From: from.RunID, To: to.RunID,
		PeakDeltaBytes: o.PeakDeltaBytes, StepDeltaMS: o.StepDeltaMS,
		Categories: []CategoryPart{}, MemoryPhases: []BirthPart{}, Stacks: []StackPart{},
		Phases: []PhasePart{}, ModuleTimes: []ModuleTimePart{}}, FreedDeltaBytes: o.FreedDeltaBytes}
	if o.PeakDeltaBytes == nil && o.StepDeltaMS == nil {
		return doc, errors.New("the runs have neither peaks nor steps that can be compared")
	}
	labels := identity.Labels([]identity.Identity{from.Identity, to.Identity}, []time.Time{from.Started, to.Started})
	for i, s := range []*Input{&from, &to} {
		labels[i] = cmp.Or(s.As, labels[i])
		doc.Runs[i] = s.explained(labels[i])
		if s.Kept != nil {
			doc.Kept[i] = s.Kept.AtPeakBytes
		}
		if s.BrokenDown() {
			doc.Hooks[i] = s.Main().SharedHookActivations()
		}
	}
	doc.HeldByHooks = compare.HooksInsteadOfAutograd(&from.Summary, &to.Summary)
	if from.BrokenDown() && to.BrokenDown() {
		doc.Categories, doc.Stacks = explainCategories(&from, &to), explainStacks(&from, &to)
		doc.explainBirths(&from, &to)
	}
	doc.explainPhases(&from.Summary, &to.Summary, o.Phases)
	doc.explainModuleTimes(&from, &to)
	say := func(i int, remarks ...compare.Remark) {
		for _, r := range remarks {
			doc.Said = append(doc.Said, compare.Said{Remark: r, Place: labels[i : i+1]})
		}
	}
	say(0, compare.RemarksOf(&from.Summary)...)
	say(1, o.Remarks...)
	for i, s := range []*Input{&from, &to} {
		if main := s.Main(); main != nil {
			for k := range main.Remarks {
				say(i, compare.Remark{Kind: compare.RemarkOfBreakdown, Breakdown: &main.Remarks[k]})
			}
		}
	}
	return doc, nil
}

func (d *Input) explained(label string) Run {
	r := Run{Identity: d.Identity, Label: label, PeakBytes: d.PeakBytes, StepMS: d.StepMS}
	if main := d.Main(); main != nil {
		r.Device, r.Conservation = &main.Device, &main.Conservation
		if d.BrokenDown() {
			r.At, r.Modules = &main.At, &d.known
		}
	}
	return r
}

// explainCategories lists the categories with bytes at either run's peak, in the order of precedence.
func explainCategories(from, to *Input) []CategoryPart {
	f := grouping.FoldsOf(from.modules, to.modules)
	type group struct {
		ModulePart
		paths map[string]bool
	}
	groups := make([]map[string]*group, memory.NCategories)
	add := func(d *Input, bytes func(*ModulePart) *int64) {
		for _, p := range d.parts {
			title := ""
			if p.module != nil {
				title = f.Fold(grouping.ModulePath(p.module, 0))
			}
			if groups[p.place] == nil {
				groups[p.place] = map[string]*group{}
			}
			g := groups[p.place][title]
			if g == nil {
				g = &group{paths: map[string]bool{}}
				if groups[p.place][title] = g; p.module != nil {
					g.Module, g.Role = &title, &p.module.Role
				}
				if p.module == memory.IsSharedByModules {
					g.Role = nil
				}
			}
			if p.module != nil && p.module != memory.IsSharedByModules {
				g.paths[p.module.Path] = true
				if g.Role != nil && *g.Role != p.module.Role {
					g.Role = nil
				}
			}
			*bytes(&g.ModulePart) += p.bytes
		}
	}
	add(from, func(m *ModulePart) *int64 { return &m.FromBytes })
	add(to, func(m *ModulePart) *int64 { return &m.ToBytes })
	out := []CategoryPart{}
	for place, by := range groups {
		if by == nil {
			continue
		}
		name := schemas.Categories[place]
		c := CategoryPart{Category: name, FromEvidence: from.Main().Category(name).Evidence,
			ToEvidence: to.Main().Category(name).Evidence,
			Modules:    []ModulePart{}, Phases: []BirthPart{}}
		for _, g := range by {
			g.DeltaBytes, g.Modules = g.ToBytes-g.FromBytes, len(g.paths)
			c.FromBytes, c.ToBytes, c.DeltaBytes = c.FromBytes+g.FromBytes, c.ToBytes+g.ToBytes,
				c.DeltaBytes+g.DeltaBytes
			c.Modules = append(c.Modules, g.ModulePart)
		}
		slices.SortFunc(c.Modules, func(a, b ModulePart) int {
			return cmp.Or(cmp.Compare(magnitude(b.DeltaBytes), magnitude(a.DeltaBytes)),
				cmp.Compare(b.ToBytes, a.ToBytes), strings.Compare(a.Title(), b.Title()))
		})
		out = append(out, c)
	}
	return out
}

func magnitude(n int64) int64 { return max(n, -n) }

// Title returns how the modules are shown: "blocks.*.attention.q ×20", or a dash if they are unknown.
func (m *ModulePart) Title() string {
	switch {
	case m.Module == nil:
		return "–"
	case m.Modules > 1:
		return *m.Module + " ×" + strconv.Itoa(m.Modules)
	}
	return *m.Module
}

// explainPhases lists the phases with their times in both runs, and sets the residue: the part of the steps' difference
// that no phase explains.
func (doc *Explanation) explainPhases(from, to *analyze.Summary, deltas []compare.PhaseDelta) {
	if doc.StepDeltaMS == nil {
		return
	}
	residue := *doc.StepDeltaMS
	for _, p := range deltas {
		if p.MS == nil && p.DeltaMS == nil {
			continue
		}
		e := PhasePart{Phase: p.Phase, DeltaMS: p.DeltaMS}
		if takes(from, p.Phase) {
			if k := from.PhaseTimes[p.Phase].Known(); k != nil {
				e.FromMS = &k.Median
			}
		}
		if takes(to, p.Phase) {
			e.ToMS = p.MS
		}
		if p.DeltaMS != nil {
			residue -= *p.DeltaMS
		}
		doc.Phases = append(doc.Phases, e)
	}
	if len(doc.Phases) > 0 {
		doc.PhaseResidueMS = &residue
	}
}

// takes reports whether the run's timed steps have a time for the phase.
func takes(s *analyze.Summary, phase string) bool { return s.PhaseTimes[phase].Wall != nil }
