package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/prose"
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

// A low is the lowest that was allocated in a step, and the first event after which it was.
type low struct {
	step, seq, bytes int64
}

// growth looks at what every step leaves behind: where the lowest allocated of each is above that of the one before,
// for many steps, something keeps what earlier ones made. The highest of a step would not do: it follows the batch.
func (x *evidence) growth() []Finding {
	lows := rising(x.lows())
	if len(lows) < growthSteps {
		return nil
	}
	first, last := lows[0], lows[len(lows)-1]
	grown, steps := last.bytes-first.bytes, last.step-first.step
	whole := x.d.AllocatedBytes
	if !memory.AtLeast(grown, steps*whole, growthStepPercent) && !memory.AtLeast(grown, whole, growthPercent) {
		return nil
	}
	f := x.finding(Growth)
	f.At = new(memory.MomentOf(x.in, x.p, last.seq))
	x.of(&f, grown)
	from := "allocations.parquet: block_bytes live after event %d, the lowest of step %d"
	f.bytes("lowest of the first of these steps", first.bytes, fmt.Sprintf(from, first.seq, first.step))
	f.bytes("lowest of the last", last.bytes, fmt.Sprintf(from, last.seq, last.step))
	f.count("steps between", int(steps), "steps.parquet")
	f.bytes("growth a step", grown/steps, "steps.parquet and allocations.parquet: the difference by the steps")
	x.peakFigure(&f)
	each := "each step"
	if steps >= int64(len(lows)) {
		each = "each recorded step"
	}
	f.Sentence = fmt.Sprintf("From step %d to step %d the lowest allocated of %s is above that of the one before: by "+
		"%s a step, %s (%s of %s) in all",
		first.step, last.step, each, prose.MiB(grown/steps), prose.MiB(grown),
		prose.Share(float64(grown), float64(whole)), x.peak)
	categories, modules := x.grown(first.seq, last.seq)
	parts := named(categories, grown, func(c schemas.Category) string { return prose.Words(c) },
		func(c schemas.Category,
			n int64) {
			f.bytes("of it "+prose.Words(c), n,
				fmt.Sprintf("owners.parquet: category %s after event %d, less that after event %d", c, last.seq,
					first.seq))
		})
	if len(parts) > 0 {
		f.Sentence += ", of it " + prose.JoinWords(parts)
	}
	parts = named(modules, grown, func(m string) string { return "of module " + m }, func(m string, n int64) {
		f.bytes("made in it for module "+m, n, fmt.Sprintf("allocations.parquet and owners.parquet: live after event "+
			"%d, made after event %d", last.seq, first.seq))
	})
	if len(parts) > 0 {
		f.Sentence += "; by module, " + prose.JoinWords(parts)
	}
	f.Sentence += ". Something keeps tensors or graphs of earlier steps alive."
	f.Change = "keep numbers of a step and not its tensors: loss.item() or loss.detach() in what is summed or put " +
		"into a list, which else keeps the step's whole graph, and torch.no_grad() around what trains nothing"
	return []Finding{f}
}

// lows gives those of the recorded steps after warm-up, in order.
func (x *evidence) lows() (lows []low) {
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
		if k := len(lows) - 1; bytes < lows[k].bytes {
			lows[k].seq, lows[k].bytes = seq, bytes
		}
	}
	begin := func(before int64) { // the steps that have begun before an event, with what was allocated then
		for next < len(steps) && steps[next].BeginSeq < before {
			lows = append(lows, low{steps[next].Step, max(since, steps[next].BeginSeq), allocated})
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
func rising(lows []low) (longest []low) {
	from := 0
	for i := range lows {
		if i > 0 && lows[i].bytes <= lows[i-1].bytes {
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
		now, _ := x.l.Owner(i, seq)
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

// named words the largest parts of a whole, and hands them to use.
func named[K cmp.Ordered](parts map[K]int64, whole int64, name func(K) string, use func(K, int64)) (out []string) {
	keys := slices.SortedFunc(maps.Keys(parts), func(a, b K) int {
		return cmp.Or(cmp.Compare(parts[b], parts[a]), cmp.Compare(a, b))
	})
	for _, k := range keys[:min(len(keys), growthNamed)] {
		if !memory.AtLeast(parts[k], whole, growthPartPercent) {
			break
		}
		out = append(out, prose.MiB(parts[k])+" "+name(k))
		use(k, parts[k])
	}
	return out
}
