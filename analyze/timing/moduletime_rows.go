package timing

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// timeGroups are rows of module times while times are added to them.
type timeGroups struct {
	modules map[int64]*schemas.Module
	keyer   *grouping.Keyer
	by      ModuleTimeBy
	rows    map[string]*timeGroup
}

type timeGroup struct {
	ModuleTimeRow
	paths map[string]bool
}

func newTimeGroups(in *schemas.Tables, rank int32, by ModuleTimeBy) *timeGroups {
	return &timeGroups{modules: ModulesOf(in, rank), by: by, rows: map[string]*timeGroup{},
		keyer: &grouping.Keyer{Dimension: by.Dimension, By: &grouping.By{Depth: by.Depth, Fold: by.Fold},
			Folds: grouping.FoldsOf(in.Modules)}}
}

// ModulesOf returns one rank's modules by id.
func ModulesOf(in *schemas.Tables, rank int32) map[int64]*schemas.Module {
	out := map[int64]*schemas.Module{}
	for i := range in.Modules {
		if m := &in.Modules[i]; m.Rank == rank {
			out[m.ID] = m
		}
	}
	return out
}

// add adds one module's time in one phase.
func (g *timeGroups) add(s Share) {
	name, path := "", ""
	if m := g.modules[s.Module]; m != nil {
		name, path = g.keyer.Key(nil, 0, m, nil).Text, grouping.ModulePath(m, g.by.Depth)
	}
	row := g.rows[name]
	if row == nil {
		row = &timeGroup{paths: map[string]bool{}}
		row.Phases = map[string]float64{}
		if name != "" {
			row.Key = &name
		}
		g.rows[name] = row
	}
	if path != "" {
		row.paths[path] = true
	}
	row.MS += s.MS
	row.Phases[s.Phase] += s.MS
	if s.Hook {
		row.HookMS += s.MS
	}
}

// list returns the rows, the longest first. Rows beyond the longest top are merged, if that saves a row.
func (g *timeGroups) list(top int) []ModuleTimeRow {
	out := []ModuleTimeRow{}
	for _, r := range g.rows {
		r.Modules = len(r.paths)
		out = append(out, r.ModuleTimeRow)
	}
	slices.SortFunc(out, func(a, b ModuleTimeRow) int {
		return cmp.Or(cmp.Compare(b.MS, a.MS), grouping.CompareNames(identity.TextOf(a.Key), identity.TextOf(b.Key)))
	})
	if top == 0 {
		return out
	}
	out, left := memory.TopAndRest(out, top)
	if len(left) == 0 {
		return out
	}
	rest := ModuleTimeRow{Others: len(left), Phases: map[string]float64{}}
	for _, r := range left {
		rest.MS, rest.HookMS, rest.Modules = rest.MS+r.MS, rest.HookMS+r.HookMS, rest.Modules+r.Modules
		for p, ms := range r.Phases {
			rest.Phases[p] += ms
		}
	}
	return append(slices.Clip(out), rest)
}
