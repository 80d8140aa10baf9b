package findings

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/analyze/growth"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

const (
	growthNamed       = 3 // categories and modules that are named
	growthPartPercent = 5 // of the growth: what is less is not named
)

// GrowthFacts are those of [Growth], whose bytes are all that the steps added.
type GrowthFacts struct {
	*growth.Growth
	// the largest parts of it: what the categories count more, and what was made in between for modules
	Categories, Modules []NamedBytes
}

// KeepsGraphs reports whether a good part of what grows are activations, which only a graph of autograd keeps.
func (x *GrowthFacts) KeepsGraphs() bool {
	return slices.ContainsFunc(x.Categories, func(p NamedBytes) bool { return p.Name == schemas.Activations })
}

// NamedBytes are those of a category or of a module.
type NamedBytes struct {
	Name  string
	Bytes int64
}

// growth tells of what every step, or pass, leaves behind.
func (x *evidence) growth() []Finding {
	g := x.run.Growth
	if g == nil {
		return nil
	}
	f := x.finding(Growth)
	f.At = new(memory.MomentOf(x.in, x.p, g.Last.Event))
	x.of(&f, g.Bytes())
	categories, modules := x.grown(g.First.Event, g.Last.Event)
	f.Facts = GrowthFacts{Growth: g, Categories: largest(categories, g.Bytes()), Modules: largest(modules, g.Bytes())}
	x.line(&f, func(_ int, a *schemas.Allocation) int64 {
		if a.AllocSeq <= g.First.Event || !a.LiveAt(g.Last.Event) {
			return 0
		}
		return a.BlockBytes
	})
	if f.Line != nil { // which may have made again what the first step held too
		f.Line.Bytes = min(f.Line.Bytes, g.Bytes())
	}
	return []Finding{f}
}

// grown says by how many bytes each category counts more after one event than after another, and what of the blocks
// made in between belongs to each module that is known.
func (x *evidence) grown(from, to int64) (categories map[schemas.Category]int64, modules map[string]int64) {
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
		if m, _ := x.modules.Module(x.l, i, to, &known); a.AllocSeq > from && m != nil &&
			m != memory.IsSharedByModules {
			modules[cmp.Or(m.Path, m.Class)] += a.RequestedBytes
		}
	}
	return categories, modules
}

// largest are the largest parts of a whole.
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
