package analyze

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// ExplainSchema is the version of [ExplainDocument].
const ExplainSchema = "dpsight.explain/1"

// ExplainDocument is what "dpsight analyze explain --format json" prints: why one run's peak is above another's, and
// why its step is longer. Differences are To's value less From's.
type ExplainDocument struct {
	Schema         string `json:"schema"`
	From           string `json:"from"` // run id
	To             string `json:"to"`   // run id
	PeakDeltaBytes *int64 `json:"peak_delta_bytes"`
	// Categories sum to PeakDeltaBytes, each counted at its own run's peak. Empty where either peak is not broken down.
	Categories []ExplainedCategory `json:"categories"`
	// MemoryPhases sum to PeakDeltaBytes too. Empty where either run has no phases.
	MemoryPhases []ExplainedBirth `json:"memory_phases"`
	// Stacks sum to PeakDeltaBytes too. Empty where either run has none.
	Stacks      []ExplainedStack `json:"stacks"`
	StepDeltaMS *float64         `json:"step_delta_ms"` // of medians; null where the two cannot be compared
	// Phases and PhaseResidueMS sum to StepDeltaMS: a median of sums is not the sum of medians.
	Phases         []ExplainedPhase `json:"phases"`
	PhaseResidueMS *float64         `json:"phase_residue_ms"`
	// ModuleTimes, OutsideModules and ModuleResidueMS sum to StepDeltaMS too: the residue is that of the phases and
	// what either run could not attribute. Empty and null where either run has no times of modules.
	ModuleTimes     []ExplainedModuleTime `json:"module_times"`    // the largest difference first
	OutsideModules  *ExplainedTime        `json:"outside_modules"` // inside no module's call: the loss, the optimizer
	ModuleResidueMS *float64              `json:"module_residue_ms"`
	// those on memory, those on steps and phases, those on modules' times
	Sentences []string        `json:"sentences"`
	Runs      [2]ExplainedRun `json:"runs"` // From, To
	Warnings  []string        `json:"warnings"`

	memory, phases int // how many of Sentences are on memory; and on steps and their phases, those included
}

// MemorySentences are those on the peaks.
func (d *ExplainDocument) MemorySentences() []string { return d.Sentences[:d.memory] }

// TimeSentences are those on the steps and their phases.
func (d *ExplainDocument) TimeSentences() []string { return d.Sentences[d.memory:d.phases] }

// ModuleTimeSentences are those on where in the modules the steps' time lies.
func (d *ExplainDocument) ModuleTimeSentences() []string { return d.Sentences[d.phases:] }

// ExplainedRun is one side of the comparison.
type ExplainedRun struct {
	Identity
	Label     string    `json:"label"` // that sentences and tables show it under
	PeakBytes *int64    `json:"peak_bytes"`
	Device    *string   `json:"device"` // with the highest peak
	At        *Moment   `json:"at"`     // of the peak
	StepMS    *Interval `json:"step_ms"`
	// Modules says how the modules of the bytes at the peak are known; null without a breakdown.
	Modules *ModuleBytes `json:"modules"`
	// ModuleTiming says how the times of modules are known; null without them.
	ModuleTiming *ModuleTiming `json:"module_timing"`
	Conservation *Conservation `json:"conservation"`
}

// ExplainedCategory is one category's part in the difference of the peaks.
type ExplainedCategory struct {
	Category     schemas.Category  `json:"category"`
	FromBytes    int64             `json:"from_bytes"`
	ToBytes      int64             `json:"to_bytes"`
	DeltaBytes   int64             `json:"delta_bytes"`
	FromEvidence Evidence          `json:"from_evidence"` // of FromBytes
	ToEvidence   Evidence          `json:"to_evidence"`
	Modules      []ExplainedModule `json:"modules"` // sum to the category; the largest difference first
	// sum to the category, as MemoryPhases do to the peak; empty where those are
	Phases []ExplainedBirth `json:"phases"`
}

// ExplainedModule is the part of modules that differ in the number of their layer only.
type ExplainedModule struct {
	// path with a star for the layers' number, or [SharedByModules]; null = not known
	Module     *string `json:"module"`
	Role       *string `json:"role"`    // null where not known, or where they differ
	Modules    int     `json:"modules"` // 0 where it is not of modules
	FromBytes  int64   `json:"from_bytes"`
	ToBytes    int64   `json:"to_bytes"`
	DeltaBytes int64   `json:"delta_bytes"`
}

// ExplainedPhase is one phase's part in the difference of the steps. A phase that a run never takes has no time there.
type ExplainedPhase struct {
	Phase   string   `json:"phase"`
	FromMS  *float64 `json:"from_ms"` // median of a step
	ToMS    *float64 `json:"to_ms"`
	DeltaMS *float64 `json:"delta_ms"`
}

// A Dissection is what [Explain] needs of one run, so that the tables of two need not be in memory at once.
type Dissection struct {
	Summary
	As      string // what to call the run beside another; empty: its name, and what tells it apart
	modules []schemas.Module
	parts   []peakPart
	known   ModuleBytes
	born    bool             // the phases of births are known
	stacks  map[string]int64 // nil = none were recorded
	times   *timedParts      // nil = modules were not timed
}

// peakPart is what one category holds at the peak for one module, nil = not known, of blocks born in one phase.
type peakPart struct {
	peakKey
	bytes int64
}

type peakKey struct {
	place  int
	module *schemas.Module
	phase  string
}

// Dissect reduces one run. It needs all tables, the detail of blocks and owners, and the times of modules.
func Dissect(in Input) Dissection {
	d := Dissection{Summary: Summarize(in), modules: in.Modules, times: in.timeByModule()}
	main := d.Main()
	if main == nil {
		return d
	}
	p := in.placeOf(main)
	l, index := newLedger(&in, p), in.newModuleIndex(p.rank)
	phase := in.newKeyer(DimensionPhase, &By{}, p)
	for name := range phase.phases {
		d.born = d.born || name != schemas.PhaseBetween // an imported file has nothing else
	}
	bytes := map[peakKey]int64{}
	for i, a := range l.allocs {
		if !a.LiveAt(main.At.Event) {
			continue
		}
		place, _ := l.owner(i, main.At.Event)
		m, known := index.module(l, i, main.At.Event, &d.known)
		*known += a.BlockBytes
		born := phase.key(a, place, nil, nil).text
		bytes[peakKey{place, m, born}] += a.RequestedBytes
		bytes[peakKey{slackPlace, m, born}] += a.BlockBytes - a.RequestedBytes
	}
	d.stacks = in.stacksAt(p, l, main.At.Event)
	for k, n := range bytes {
		if n != 0 {
			d.parts = append(d.parts, peakPart{k, n})
		}
	}
	return d
}

// Explain compares two runs. It fails where they have neither peaks nor steps to compare.
func Explain(from, to Dissection) (ExplainDocument, error) {
	o := overheadOf(&from.Summary, &to.Summary)
	doc := ExplainDocument{Schema: ExplainSchema, From: from.RunID, To: to.RunID, PeakDeltaBytes: o.PeakDeltaBytes,
		StepDeltaMS: o.StepDeltaMS,
		Categories:  []ExplainedCategory{}, MemoryPhases: []ExplainedBirth{}, Stacks: []ExplainedStack{},
		Phases: []ExplainedPhase{}, ModuleTimes: []ExplainedModuleTime{}, Sentences: []string{}, Warnings: []string{}}
	if o.PeakDeltaBytes == nil && o.StepDeltaMS == nil {
		return doc, errors.New("the runs have neither peaks nor steps that can be compared")
	}
	labels := Labels([]Identity{from.Identity, to.Identity}, []time.Time{from.Started, to.Started})
	for i, s := range []*Dissection{&from, &to} {
		labels[i] = cmp.Or(s.As, labels[i])
		doc.Runs[i] = s.explained(labels[i])
	}
	if from.BrokenDown() && to.BrokenDown() {
		doc.Categories, doc.Stacks = explainCategories(&from, &to), explainStacks(&from, &to)
		doc.explainBirths(&from, &to)
	}
	doc.explainPhases(&from.Summary, &to.Summary, o.Phases)
	doc.explainModuleTimes(&from, &to)
	for _, w := range from.Warnings {
		doc.Warnings = append(doc.Warnings, labels[0]+": "+w)
	}
	for _, w := range o.Warnings {
		doc.Warnings = append(doc.Warnings, labels[1]+": "+w)
	}
	for i, s := range []*Dissection{&from, &to} {
		if main := s.Main(); main != nil {
			for _, w := range main.Warnings {
				doc.Warnings = append(doc.Warnings, labels[i]+": "+w)
			}
		}
	}
	doc.tell(&from.Summary, &to.Summary, &o)
	return doc, nil
}

func (d *Dissection) explained(label string) ExplainedRun {
	r := ExplainedRun{Identity: d.Identity, Label: label, PeakBytes: d.PeakBytes, StepMS: d.StepMS}
	if main := d.Main(); main != nil {
		r.Device, r.Conservation = &main.Device, &main.Conservation
		if d.BrokenDown() {
			r.At, r.Modules = &main.At, &d.known
		}
	}
	return r
}

// explainCategories lists the categories that either peak counts, in the order of precedence.
func explainCategories(from, to *Dissection) []ExplainedCategory {
	f := foldsOf(from.modules, to.modules)
	type group struct {
		ExplainedModule
		paths map[string]bool
	}
	groups := make([]map[string]*group, nCategories)
	add := func(d *Dissection, bytes func(*ExplainedModule) *int64) {
		for _, p := range d.parts {
			title := ""
			if p.module != nil {
				title = f.fold(modulePath(p.module, 0))
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
				if p.module == sharedByModules {
					g.Role = nil
				}
			}
			if p.module != nil && p.module != sharedByModules {
				g.paths[p.module.Path] = true
				if g.Role != nil && *g.Role != p.module.Role {
					g.Role = nil
				}
			}
			*bytes(&g.ExplainedModule) += p.bytes
		}
	}
	add(from, func(m *ExplainedModule) *int64 { return &m.FromBytes })
	add(to, func(m *ExplainedModule) *int64 { return &m.ToBytes })
	out := []ExplainedCategory{}
	for place, by := range groups {
		if by == nil {
			continue
		}
		name := schemas.Categories[place]
		c := ExplainedCategory{Category: name, FromEvidence: from.Main().Category(name).Evidence,
			ToEvidence: to.Main().Category(name).Evidence,
			Modules:    []ExplainedModule{}, Phases: []ExplainedBirth{}}
		for _, g := range by {
			g.DeltaBytes, g.Modules = g.ToBytes-g.FromBytes, len(g.paths)
			c.FromBytes, c.ToBytes, c.DeltaBytes = c.FromBytes+g.FromBytes, c.ToBytes+g.ToBytes,
				c.DeltaBytes+g.DeltaBytes
			c.Modules = append(c.Modules, g.ExplainedModule)
		}
		slices.SortFunc(c.Modules, func(a, b ExplainedModule) int {
			return cmp.Or(cmp.Compare(magnitude(b.DeltaBytes), magnitude(a.DeltaBytes)),
				cmp.Compare(b.ToBytes, a.ToBytes), strings.Compare(a.Title(), b.Title()))
		})
		out = append(out, c)
	}
	return out
}

// Title is what the modules are shown as: "blocks.*.attention.q ×20", or a dash where they are not known.
func (m *ExplainedModule) Title() string {
	switch {
	case m.Module == nil:
		return "–"
	case m.Modules > 1:
		return fmt.Sprintf("%s ×%d", *m.Module, m.Modules)
	}
	return *m.Module
}

func magnitude(n int64) int64 { return max(n, -n) }

// explainPhases lists the phases with a time and what is left of the steps' difference beside them.
func (doc *ExplainDocument) explainPhases(from, to *Summary, deltas []PhaseDelta) {
	if doc.StepDeltaMS == nil {
		return
	}
	residue := *doc.StepDeltaMS
	for _, p := range deltas {
		if p.MS == nil && p.DeltaMS == nil {
			continue
		}
		e := ExplainedPhase{Phase: p.Phase, DeltaMS: p.DeltaMS}
		if from.takes(p.Phase) {
			if k := from.phaseTimes[p.Phase].known(); k != nil {
				e.FromMS = &k.Median
			}
		}
		if to.takes(p.Phase) {
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

// takes reports whether the run's timed steps have the phase.
func (s *Summary) takes(phase string) bool { return s.phaseTimes[phase].wall != nil }

// negligible is the share of a difference below which a part is not named in a sentence.
const negligible = 0.01

func below(part, whole float64) bool { return math.Abs(part) < negligible*math.Abs(whole) }
