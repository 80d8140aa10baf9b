package findings

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	growthNamed       = 3 // largest number of categories and modules that the finding names
	growthPartPercent = 5 // least percentage of the growth that a named part has
	// growthBackwardPercent is the part of a growth, in per cent, that backward must have made for the gradients to
	// have a graph.
	growthBackwardPercent = 10
	// growthMorePercent is by how many per cent a device must grow more than a similar device to be reported in its
	// place.
	growthMorePercent = 1
)

// GrowthFacts are the facts of a [Growth] finding. The finding's bytes are what all steps of the series added together.
type GrowthFacts struct {
	*growth.Growth
	// Categories says by how much each category grew, and Modules how many of the added bytes belong to each module. Both
	// have only the largest parts.
	Categories, Modules []NamedBytes
	// BaseBytes are the bytes that views keep, and ViewBytes the part that the views show. BaseBytes and ViewBytes are
	// 0 unless most of the growth is kept by views.
	BaseBytes, ViewBytes int64
	// Devices is how many devices of the run were checked, and Alike how many other devices grow in the same way and by
	// no more. Elsewhere is true if the growing device is not the one with the highest peak.
	Devices, Alike int
	Elsewhere      bool
}

// KeepsGraphs reports whether more than a quarter of the growth of the named categories is activations. Only a graph of
// autograd keeps activations.
func (x *GrowthFacts) KeepsGraphs() bool {
	var all, activations int64
	for _, p := range x.Categories {
		all += p.Bytes
		if p.Name == schemas.Activations {
			activations = p.Bytes
		}
	}
	return 4*activations > all
}

// NamedBytes are the bytes of a named category or module.
type NamedBytes struct {
	Name  string
	Bytes int64
}

// growth reports memory that every step, or pass, leaves behind. growth looks at each device of the run, since a rank
// that does not have the highest peak may keep memory that the other ranks free. Devices that grow by the same line of
// the script give one finding, about the device that grows most.
func (x *evidence) growth() []Finding {
	out := x.growthHere()
	devices := x.run.Breakdown.Devices
	for i := range devices {
		if devices[i].Rank == x.d.Rank && devices[i].Device == x.d.Device {
			continue
		}
		for _, f := range x.elsewhere(&devices[i]).growthHere() {
			facts := f.Facts.(GrowthFacts)
			facts.Elsewhere = true
			k := slices.IndexFunc(out, func(o Finding) bool { return growsAlike(&o, &f) })
			if k < 0 {
				f.Facts = facts
				out = append(out, f)
				continue
			}
			most := out[k].Facts.(GrowthFacts)
			alike := most.Alike + 1
			if facts.Slope >= (1+growthMorePercent/100.)*most.Slope {
				out[k], most = f, facts
			}
			most.Alike = alike
			out[k].Facts = most
		}
	}
	return out
}

// growsAlike reports whether two devices grow in the same way and by the same line of the script.
func growsAlike(a, b *Finding) bool {
	if a.ID != b.ID || (a.Line == nil) != (b.Line == nil) {
		return false
	}
	return a.Line == nil || a.Line.Line.File == b.Line.Line.File && a.Line.Line.Number == b.Line.Line.Number
}

// growthHere finds the growth on one device. The finding has a special id if it is known what keeps the memory: the
// graph of an evaluation, the graph of a step, or a graph through gradients.
func (x *evidence) growthHere() []Finding {
	g := x.grows
	if g == nil {
		return nil
	}
	added := x.added(g)
	grows := func(a *schemas.Allocation) int64 { return added[a] }
	if memory.AtLeast(x.byException(grows), g.Bytes(), 50) { // memory that an exception keeps is a finding of its own
		return nil
	}
	categories, modules := x.grown(g, added)
	// Libraries make their workspaces once, in the step that first needs them, so workspaces are no part of the
	// growth per step.
	bytes, once := g.Bytes(), categories[schemas.Workspace]
	if once > 0 && !memory.AtLeast(once, bytes, 50) {
		bytes -= once
		delete(categories, schemas.Workspace)
	}
	facts := GrowthFacts{Growth: g, Categories: largest(categories, bytes), Modules: largest(modules, bytes),
		Devices: len(x.run.Breakdown.Devices)}
	id := Growth
	switch kept := facts.KeepsGraphs(); {
	case kept && g.Unit == growth.EvaluationPass:
		id = EvaluationGraphs
	case kept && x.throughGradients(g, added):
		id = GradientGraphs
	case kept:
		id = KeptGraphs
	default:
		if base, view := x.views(grows); memory.AtLeast(base-view, g.Bytes(), 50) {
			id, facts.BaseBytes, facts.ViewBytes = ViewKeepsBase, base, view
		}
	}
	f := x.finding(id)
	f.At = new(memory.MomentOf(x.in, x.p, g.Last.Event))
	x.of(&f, bytes)
	f.Facts = facts
	x.line(&f, func(i int, a *schemas.Allocation) int64 {
		if now, _ := x.l.Category(i, g.Last.Event); once > 0 && schemas.Categories[now] == schemas.Workspace {
			return 0
		}
		return added[a]
	})
	if f.Line != nil { // other lines may have freed memory, so this line may add more than the whole growth
		f.Line.Bytes = min(f.Line.Bytes, bytes)
	}
	x.savesKept(&f, g, id == ViewKeepsBase)
	return []Finding{f}
}

// added returns, for each block that the growth adds, how many of its bytes are added. Memory that the script replaces
// in each step, such as what a variable holds until the next step, is no growth. So added subtracts the blocks freed
// between the first and the last low from the new blocks of the same line and phase, the latest ones first. Modules are
// not compared, since they are known in only some of the steps.
func (x *evidence) added(g *growth.Growth) map[*schemas.Allocation]int64 {
	type origin struct {
		line  int64
		phase string
	}
	freed, out := map[origin]int64{}, map[*schemas.Allocation]int64{}
	for _, a := range x.l.Allocs {
		if a.LiveAt(g.First.Event) && !a.LiveAt(g.Last.Event) {
			freed[origin{a.Line, a.Phase}] += a.BlockBytes
		}
	}
	for _, a := range slices.Backward(x.l.Allocs) {
		if a.AllocSeq <= g.First.Event || !a.LiveAt(g.Last.Event) {
			continue
		}
		left := a.BlockBytes
		// A block from before the recording, or from a gap, has no line, and may have no phase.
		for _, o := range []origin{{a.Line, a.Phase}, {0, a.Phase}, {}} {
			replaced := min(left, freed[o])
			freed[o] -= replaced
			left -= replaced
		}
		if left > 0 {
			out[a] = left
		}
	}
	return out
}

// throughGradients reports whether the gradients have a graph (create_graph). throughGradients returns true if backward
// makes a large part of the growth that is neither gradients of parameters nor gradients that autograd frees as it
// proceeds.
func (x *evidence) throughGradients(g *growth.Growth, added map[*schemas.Allocation]int64) bool {
	var made int64
	for i, a := range x.l.Allocs {
		if a.Phase != schemas.PhaseBackward || added[a] == 0 {
			continue
		}
		if now, _ := x.l.Category(i, g.Last.Event); !slices.Contains(state, schemas.Categories[now]) {
			made += added[a]
		}
	}
	return memory.AtLeast(made, g.Bytes(), growthBackwardPercent)
}

// state lists the categories that training keeps from step to step on purpose.
var state = []schemas.Category{schemas.Parameters, schemas.Buffers, schemas.OptimizerState, schemas.Gradients,
	schemas.SummedGradients, schemas.Workspace}

// savesKept states how much lower the peak would be if nothing made by a step, or pass, outlived the next one. The
// replay keeps a step's blocks during the step and the next one, since a name in the script may still refer to them. So
// a change may save more than stated. savesKept uses all events, since no tag is needed to tell when a block was made.
// If copied is true, the replay keeps a copy of what views show.
func (x *evidence) savesKept(f *Finding, g *growth.Growth, copied bool) {
	if !x.brokenDown() {
		return
	}
	var voids []memory.Void
	for i, a := range x.l.Allocs {
		k := sort.Search(len(g.Spans), func(k int) bool { return g.Spans[k].To >= a.AllocSeq })
		if k+1 >= len(g.Spans) || a.AllocSeq <= g.Spans[k].From || !a.LiveAt(g.Spans[k+1].To+1) {
			continue
		}
		from, to := g.Spans[k+1].To+1, a.FreeRequestedSeq
		if now, _ := x.l.Category(i, from); slices.Contains(state, schemas.Categories[now]) {
			continue
		}
		if to == 0 {
			to = 1 << 62
		}
		v := memory.Void{From: from, To: to, Bytes: a.BlockBytes}
		if copied {
			v.Bytes -= x.viewed(a)
		}
		voids = append(voids, v)
	}
	all, changes := []memory.Span{{From: -1, To: 1 << 62}}, x.l.Changes()
	f.saves(memory.HighestWithout(changes, nil, all)-memory.HighestWithout(changes, voids, all), AtLeast)
}

// grown returns by how many bytes each category grew, and how many of the added bytes belong to each known module.
func (x *evidence) grown(g *growth.Growth, added map[*schemas.Allocation]int64) (
	categories map[schemas.Category]int64, modules map[string]int64) {
	from, to := g.First.Event, g.Last.Event
	categories, modules = map[schemas.Category]int64{}, map[string]int64{}
	add := func(i int, seq, sign int64) {
		a := x.l.Allocs[i]
		now, _ := x.l.Category(i, seq)
		categories[schemas.Categories[now]] += sign * a.RequestedBytes
		categories[schemas.Slack] += sign * (a.BlockBytes - a.RequestedBytes)
	}
	for i, a := range x.l.Allocs {
		if a.LiveAt(from) {
			add(i, from, -1)
		}
		if !a.LiveAt(to) {
			continue
		}
		add(i, to, 1)
		var known memory.ModuleBytes
		if m, _ := x.modules.Module(x.l, i, to, &known); added[a] > 0 && m != nil &&
			m != memory.IsSharedByModules {
			modules[cmp.Or(m.Path, m.Class)] += min(a.RequestedBytes, added[a])
		}
	}
	return categories, modules
}

// largest returns the largest named parts of a whole, and leaves out small ones.
func largest(parts map[string]int64, whole int64) (out []NamedBytes) {
	keys := slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(parts[b], parts[a]), cmp.Compare(a, b))
	})
	for _, k := range keys[:min(len(keys), growthNamed)] {
		if !memory.AtLeast(parts[k], whole, growthPartPercent) {
			break
		}
		out = append(out, NamedBytes{k, parts[k]})
	}
	return out
}
