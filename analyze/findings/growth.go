package findings

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/schemas"
)

const (
	growthSteps       = 8  // one after another, each with a higher lowest than the one before
	growthStepPercent = 1  // of the peak, that a step adds
	growthPercent     = 10 // of the peak, that all of them add
	growthNamed       = 3  // categories and modules that are named
	growthPartPercent = 5  // of the growth: what is less is not named
)

// GrowthFacts are those of [Growth], whose bytes are all that the steps added.
type GrowthFacts struct {
	First, Last Low
	Gaps        bool // there are steps between them that were not recorded
	// the largest parts of it: what the categories count more, and what was made in between for modules
	Categories, Modules []NamedBytes
}

// A Low is the lowest that was allocated in a step, and the first event after which it was.
type Low struct {
	Step, Event, Bytes int64
}

// NamedBytes are those of a category or of a module.
type NamedBytes struct {
	Name  string
	Bytes int64
}

// growth looks at what every step leaves behind: where the lowest allocated of each is above that of the one before,
// for many steps, something keeps what earlier ones made. The highest of a step would not do: it follows the batch.
func (x *evidence) growth() []Finding {
	lows := rising(x.lows())
	if len(lows) < growthSteps {
		return nil
	}
	first, last := lows[0], lows[len(lows)-1]
	grown, steps := last.Bytes-first.Bytes, last.Step-first.Step
	whole := x.d.AllocatedBytes
	if !memory.AtLeast(grown, steps*whole, growthStepPercent) && !memory.AtLeast(grown, whole, growthPercent) {
		return nil
	}
	f := x.finding(Growth)
	f.At = new(memory.MomentOf(x.in, x.p, last.Event))
	x.of(&f, grown)
	categories, modules := x.grown(first.Event, last.Event)
	f.Facts = GrowthFacts{First: first, Last: last, Gaps: steps >= int64(len(lows)),
		Categories: largest(categories, grown), Modules: largest(modules, grown)}
	x.line(&f, func(_ int, a *schemas.Allocation) int64 {
		if a.AllocSeq <= first.Event || !a.LiveAt(last.Event) {
			return 0
		}
		return a.BlockBytes
	})
	return []Finding{f}
}

// lows gives those of the recorded steps after warm-up, in order.
func (x *evidence) lows() (lows []Low) {
	var steps []*schemas.Step
	for i := range x.in.Steps {
		if s := &x.in.Steps[i]; s.Rank == x.p.Rank && s.Device == x.p.Device && s.Recorded && !s.Warmup {
			steps = append(steps, s)
		}
	}
	if len(steps) < growthSteps {
		return nil
	}
	slices.SortFunc(steps, func(a, b *schemas.Step) int { return cmp.Compare(a.Step, b.Step) })
	next := 0
	var allocated, since int64 // as it is since that event
	see := func(seq, bytes int64) {
		if k := len(lows) - 1; bytes < lows[k].Bytes {
			lows[k].Event, lows[k].Bytes = seq, bytes
		}
	}
	begin := func(before int64) { // the steps that have begun before an event, with what was allocated then
		for next < len(steps) && steps[next].BeginSeq < before {
			lows = append(lows, Low{steps[next].Step, max(since, steps[next].BeginSeq), allocated})
			next++
		}
	}
	memory.Sweep(x.l.Changes(), func(seq int64, bytes []int64) {
		begin(seq)
		allocated, since = timeline.Total(bytes), seq
		if next > 0 && seq <= steps[next-1].EndSeq {
			see(seq, allocated)
		}
	})
	begin(1 << 62)
	return lows
}

// rising is the longest stretch in which each is above the one before, of equals the last.
func rising(lows []Low) (longest []Low) {
	from := 0
	for i := range lows {
		if i > 0 && lows[i].Bytes <= lows[i-1].Bytes {
			from = i
		}
		if i+1-from >= len(longest) {
			longest = lows[from : i+1]
		}
	}
	return longest
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
