package findings

import (
	"cmp"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// evidence is the input of checks: a run and one of its devices. The device is the one with the highest peak, unless a
// check examines other devices too.
type evidence struct {
	in        *schemas.Tables
	run       *analyze.Summary
	ledgers   *memory.Ledgers
	notLooked []NotLooked

	// The fields from p on describe the device. The fields of evidence from p on are empty if the run has no breakdown.
	p       identity.Place
	grows   *growth.Growth // nil if the device's memory does not grow
	l       *memory.Ledger
	d       *memory.DeviceBreakdown // breakdown at the highest recorded moment
	modules *memory.ModuleIndex
	holders *memory.Holders
	// whole names the total that shares refer to: the peak, or only the highest recorded moment if the peak came
	// outside the recorded steps. In the second case it is unknown what a change would save of the peak.
	whole string
	// looked are the stretches of events in which tags tell every owner: set-up, the instrumented steps, and the
	// unfinished step after the last completed step if it is known to be instrumented.
	looked []memory.Span
	within []memory.Span // spans of steps and evaluation passes: see stepOf
}

func newEvidence(in *schemas.Tables, s *analyze.Summary, ledgers *memory.Ledgers) *evidence {
	x := &evidence{in: in, run: s, ledgers: ledgers}
	if d := s.Main(); d != nil {
		x.lookAt(d, s.BrokenDown())
		x.grows = s.Growth
	}
	return x
}

// lookAt sets the device that the checks examine. brokenDown says whether the breakdown d explains the device's peak.
func (x *evidence) lookAt(d *memory.DeviceBreakdown, brokenDown bool) {
	x.p, x.d = memory.PlaceOf(x.in, d), d
	x.holders = memory.NewHolders(x.in, x.p)
	x.l, x.modules, x.looked = x.ledgers.Of(x.p), memory.NewModuleIndex(x.in, x.p.Rank), knownEvents(x.in, x.p)
	x.whole = OfPeakAllocated
	if !brokenDown {
		x.whole = OfHighestRecorded
	}
}

// brokenDown reports whether the breakdown explains the device's peak, and not only the highest recorded moment.
func (x *evidence) brokenDown() bool { return x.whole == OfPeakAllocated }

// elsewhere returns evidence about another device of the run, for the check for growth.
func (x *evidence) elsewhere(d *memory.DeviceBreakdown) *evidence {
	y := &evidence{in: x.in, run: x.run, ledgers: x.ledgers}
	torch := d.TorchPeakAllocatedBytes
	y.lookAt(d, torch == nil || *torch <= d.AllocatedBytes)
	y.grows = growth.Of(x.in, y.p, y.l, d.At, d.AllocatedBytes)
	return y
}

// knownEvents returns the events before the first step and those of each instrumented step; all events if there are no
// steps. A step in which the run died is not in the table of steps; knownEvents counts it as instrumented if the peak
// with tags lies after the last completed step.
func knownEvents(in *schemas.Tables, p identity.Place) []memory.Span {
	var steps []*schemas.Step
	for i := range in.Steps {
		if s := &in.Steps[i]; s.Rank == p.Rank && s.Device == p.Device {
			steps = append(steps, s)
		}
	}
	slices.SortFunc(steps, func(a, b *schemas.Step) int { return cmp.Compare(a.Step, b.Step) })
	if len(steps) == 0 {
		return []memory.Span{{From: -1, To: 1 << 62}}
	}
	out := []memory.Span{{From: -1, To: steps[0].BeginSeq}}
	for _, s := range steps {
		if s.Instrumented && s.Recorded {
			out = append(out, memory.Span{From: s.BeginSeq, To: s.EndSeq})
		}
	}
	last := steps[len(steps)-1].EndSeq
	if v := identity.Verdict(in, p); v != nil && v.InstrumentedPeakSeq != nil && *v.InstrumentedPeakSeq > last {
		out = append(out, memory.Span{From: last, To: 1 << 62})
	}
	return out
}

// HeldFacts are the facts of the findings about blocks that need not be held.
type HeldFacts struct{ Blocks int }

// of sets a finding's size in bytes, and its share of what is allocated at the highest recorded moment.
func (x *evidence) of(f *Finding, bytes int64) { f.of(bytes, x.d.AllocatedBytes, x.whole) }

// finding returns a finding about the peak, or about the highest recorded moment, without its facts and size.
func (x *evidence) finding(id string) Finding {
	return Finding{ID: id, Device: new(x.d.Device), Rank: new(x.d.Rank), At: new(x.d.At),
		Highest: Highest{x.d.At, x.d.AllocatedBytes, x.brokenDown()}}
}

// needless returns a finding about the activations at the peak that want selects, which need not be held. needless
// returns nil if these activations are less than percent of the peak.
func (x *evidence) needless(id string, percent float64, want func(a *schemas.Allocation) bool) *Finding {
	held := x.bytesAtPeak(schemas.Activations, want)
	if held == 0 || !memory.AtLeast(held, x.d.AllocatedBytes, percent) {
		return nil
	}
	f := x.finding(id)
	x.of(&f, held)
	facts, part := HeldFacts{}, x.counted(schemas.Activations).where(want)
	x.line(&f, func(i int, a *schemas.Allocation) int64 {
		bytes := part(i, a)
		if bytes > 0 {
			facts.Blocks++
		}
		return bytes
	})
	f.Facts = facts
	return &f
}

// bytesOf returns the bytes that count under a category at the peak.
func (x *evidence) bytesOf(c schemas.Category) int64 { return x.d.Category(c).Bytes }

// savesWithout replays the events without the bytes of the voids, and sets a finding's saving to the fall of the
// highest allocated. The saving is limited by the moment that is the highest without the voids, also if the moment lies
// in a step without tags, in a phase that has no void in any step. savesWithout sets no saving if the peak was not
// recorded, or if only a step without tags reached it, since it is then unknown which other bytes would remain.
func (x *evidence) savesWithout(f *Finding, voids []memory.Void, events []memory.Span, known Confidence) {
	if v := identity.Verdict(x.in, x.p); v == nil || v.InstrumentedPeakSeq == nil || !x.brokenDown() {
		return
	}
	changes := x.l.Changes()
	saved := memory.HighestWithout(changes, nil, events) - memory.HighestWithout(changes, voids, events)
	f.saves(min(saved, x.d.AllocatedBytes-x.besidesVoids(voids)), known)
}

// besidesVoids returns the highest allocated over those phases in which no step has a void. A phase that has a void in
// a step with tags is left out in all steps, since a step without tags may hold the same blocks there.
func (x *evidence) besidesVoids(voids []memory.Void) (highest int64) {
	var phases []*schemas.Phase
	known := memory.PhasesWithBytes(x.in)
	for i := range x.in.Phases {
		if f := &x.in.Phases[i]; f.Rank == x.p.Rank && f.Device == x.p.Device && known(f) {
			phases = append(phases, f)
		}
	}
	slices.SortFunc(phases, func(a, b *schemas.Phase) int { return cmp.Compare(a.BeginSeq, b.BeginSeq) })
	change := make([]int, len(phases)+1) // changes in the number of voids, by phase
	for _, v := range voids {
		from := sort.Search(len(phases), func(i int) bool { return phases[i].EndSeq >= v.From })
		to := sort.Search(len(phases), func(i int) bool { return phases[i].BeginSeq >= v.To })
		if from < to {
			change[from]++
			change[to]--
		}
	}
	within := map[string]bool{}
	n := 0
	for i, f := range phases {
		if n += change[i]; n > 0 {
			within[f.Phase] = true
		}
	}
	for _, f := range phases {
		if !within[f.Phase] {
			highest = max(highest, schemas.OrZero(f.PeakBytes))
		}
	}
	return highest
}

// held returns the stretches in which wanted blocks count under a category. A stretch has all bytes of a block, from
// one change of its owner to the next.
func (x *evidence) held(c schemas.Category, want func(a *schemas.Allocation) bool) []memory.Void {
	var out []memory.Void
	for i, a := range x.l.Allocs {
		if want == nil || want(a) {
			out = append(out, x.heldBy(i, c)...)
		}
	}
	return out
}

// heldBy returns the stretches in which block i counts under the category.
func (x *evidence) heldBy(i int, c schemas.Category) (out []memory.Void) {
	place, a := memory.CategoryPlace(c), x.l.Allocs[i]
	if !slices.ContainsFunc(x.l.Owners[i], func(o *schemas.Owner) bool {
		return memory.CategoryPlace(o.Category) == place
	}) {
		return nil
	}
	end := a.FreeRequestedSeq
	if end == 0 {
		end = 1 << 62
	}
	turns := append(x.l.Turns(i, end, nil), end)
	for k := range len(turns) - 1 {
		if now, _ := x.l.Category(i, turns[k]); now == place {
			out = append(out, memory.Void{From: turns[k], To: turns[k+1], Bytes: a.RequestedBytes})
		}
	}
	return out
}

// bytesAtPeak sums the bytes of a category's blocks at the peak for which want is true.
func (x *evidence) bytesAtPeak(c schemas.Category, want func(a *schemas.Allocation) bool) (bytes int64) {
	for i, a := range x.l.Allocs {
		if !a.LiveAt(x.d.At.Event) || !want(a) {
			continue
		}
		if now, _ := x.l.Category(i, x.d.At.Event); now == memory.CategoryPlace(c) {
			bytes += a.RequestedBytes
		}
	}
	return bytes
}

// moduleOf returns the module that block i counts under at the peak, or nil if it is unknown.
func (x *evidence) moduleOf(i int) *schemas.Module {
	var known memory.ModuleBytes
	m, _ := x.modules.Module(x.l, i, x.d.At.Event, &known)
	return m
}

// A ModulePart is the bytes of one module; Module is nil if unknown.
type ModulePart struct {
	Module *schemas.Module
	Bytes  int64
}

// largestModule returns the module that has the most bytes of a category at the peak.
func (x *evidence) largestModule(c schemas.Category) (most ModulePart) {
	by := map[*schemas.Module]int64{}
	for i, a := range x.l.Allocs {
		if !a.LiveAt(x.d.At.Event) {
			continue
		}
		if now, _ := x.l.Category(i, x.d.At.Event); now == memory.CategoryPlace(c) {
			by[x.moduleOf(i)] += a.RequestedBytes
		}
	}
	for k, b := range by {
		if k != nil && (b > most.Bytes || b == most.Bytes && most.Module != nil && k.ID < most.Module.ID) {
			most = ModulePart{k, b}
		}
	}
	return most
}
