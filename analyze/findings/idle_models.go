package findings

import (
	"math"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/source"
	"github.com/dpsight/dpsight/schemas"
)

const idlePercent = 5 // least percentage of the peak that models would save if they existed only while they run

// IdleModelsFacts are the facts of an [IdleModels] finding: the models that hold bytes at the peak but run only before
// or after the peak, by the names of their root modules. A name with a plus sign also stands for other models of the
// same class.
type IdleModelsFacts struct{ Idle []NamedBytes }

// idleModels looks for models that exist before they first run, or after they last ran, while another model makes the
// peak. A model that runs to the end, such as a teacher or a discriminator, is not idle.
func (x *evidence) idleModels() []Finding {
	runs := x.rootRuns()
	if len(runs) < 2 {
		return nil
	}
	roots := x.blockRoots(runs)
	idle, held := map[string]int64{}, int64(0)
	var voids []memory.Void
	for i, a := range x.l.Allocs {
		run, known := runs[roots[i]]
		if !known || x.exceptionOf(a) != nil {
			continue
		}
		end := a.FreeRequestedSeq
		if end == 0 {
			end = 1 << 62
		}
		before, after := memory.Void{From: a.AllocSeq, To: min(end, run.From)},
			memory.Void{From: max(a.AllocSeq, run.To), To: end}
		for _, v := range []memory.Void{before, after} {
			if v.From >= v.To {
				continue
			}
			v.Bytes = a.BlockBytes
			voids = append(voids, v)
			if v.From <= x.d.At.Event && x.d.At.Event < v.To {
				idle[roots[i]] += a.BlockBytes
				held += a.BlockBytes
			}
		}
	}
	f := x.finding(IdleModels)
	x.of(&f, held)
	x.savesWithout(&f, voids, []memory.Span{{From: -1, To: 1 << 62}}, AtLeast)
	if f.SavesBytes == nil || !memory.AtLeast(*f.SavesBytes, x.d.AllocatedBytes, idlePercent) {
		return nil
	}
	f.Facts = IdleModelsFacts{Idle: largest(idle, held)}
	x.line(&f, func(i int, a *schemas.Allocation) int64 {
		if idle[roots[i]] == 0 || !a.LiveAt(x.d.At.Event) {
			return 0
		}
		return a.BlockBytes
	})
	if f.Line != nil && f.Holder == "" {
		f.Holder = source.Assigned(f.Line.Line.Text)
	}
	return []Finding{f}
}

// rootRuns returns, for each root module, the events from its first call to its last, extended to whole steps. Roots
// have distinct names ("Sequential#2") only if several models have the same class.
func (x *evidence) rootRuns() map[string]memory.Span {
	runs := map[string]memory.Span{}
	for _, a := range x.l.Allocs {
		m := x.modules.ByID[a.Module]
		if m == nil || rootOf(m.Path) == "" {
			continue
		}
		run, seen := runs[rootOf(m.Path)]
		if !seen {
			run.From = math.MaxInt64
		}
		from, to := a.AllocSeq, a.AllocSeq
		if step := x.stepOf(a.AllocSeq); step != nil {
			from, to = step.From, step.To+1
		}
		runs[rootOf(m.Path)] = memory.Span{From: min(run.From, from), To: max(run.To, to)}
	}
	return runs
}

// blockRoots returns the root that each block belongs to as a parameter, a gradient or state; "" for other blocks. A
// model that had not run when its parameters were named may carry another model's name. If so, blocks of both models
// share a name. The span of a shared name covers the calls of both models, from the first call of either to the last.
func (x *evidence) blockRoots(runs map[string]memory.Span) []string {
	// roots has the names of blocks, and alive how many blocks have each name at the peak.
	roots, alive := make([]string, len(x.l.Allocs)), map[string]int{}
	named, shared := map[string]bool{}, map[string]bool{}
	for i, a := range x.l.Allocs {
		for _, o := range x.l.Owners[i] {
			if !schemas.NamesParameters(o.Category) || o.Evidence != schemas.Tagged || rootOf(o.Name) == "" {
				continue
			}
			roots[i] = rootOf(o.Name)
			if o.Category != schemas.Parameters {
				continue
			}
			named[roots[i]] = true
			if a.LiveAt(x.d.At.Event) {
				if alive[o.Name]++; alive[o.Name] > 1 {
					shared[roots[i]] = true
				}
			}
		}
	}
	for root := range shared {
		run := runs[root]
		for other, r := range runs {
			if !named[other] {
				run = memory.Span{From: min(run.From, r.From), To: max(run.To, r.To)}
			}
		}
		both := root + "+"
		runs[both] = run
		for i := range roots {
			if roots[i] == root && slices.ContainsFunc(x.l.Owners[i], func(o *schemas.Owner) bool {
				return o.Category == schemas.Parameters
			}) {
				roots[i] = both
			}
		}
	}
	return roots
}

// rootOf returns the root module that a path or a parameter's name begins with, if the run has several models of its
// class.
func rootOf(path string) string {
	root, _, _ := strings.Cut(path, ".")
	if !strings.Contains(root, "#") {
		return ""
	}
	return root
}
