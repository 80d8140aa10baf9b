package analyze

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// timeGroups are rows of time in the making.
type timeGroups struct {
	modules map[int64]*schemas.Module
	keyer   *keyer
	by      ModuleTimeBy
	rows    map[string]*timeGroup
}

type timeGroup struct {
	ModuleTimeRow
	paths map[string]bool
}

func newTimeGroups(in *Input, rank int32, by ModuleTimeBy) *timeGroups {
	return &timeGroups{modules: in.modulesOf(rank), by: by, rows: map[string]*timeGroup{},
		keyer: &keyer{Dimension: by.Dimension, by: &By{Depth: by.Depth, Fold: by.Fold}, folds: foldsOf(in.Modules)}}
}

// modulesOf are one rank's modules by id.
func (in *Input) modulesOf(rank int32) map[int64]*schemas.Module {
	out := map[int64]*schemas.Module{}
	for i := range in.Modules {
		if m := &in.Modules[i]; m.Rank == rank {
			out[m.ID] = m
		}
	}
	return out
}

// add adds one module's time in one phase.
func (g *timeGroups) add(s share) {
	name, path := "", ""
	if m := g.modules[s.module]; m != nil {
		name, path = g.keyer.key(nil, 0, m, nil).text, modulePath(m, g.by.Depth)
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
	row.MS += s.ms
	row.Phases[s.phase] += s.ms
	if s.hook {
		row.HookMS += s.ms
	}
}

// list gives the rows, the longest first; beyond the longest top ones the rest are one, where that saves a row.
func (g *timeGroups) list(top int) []ModuleTimeRow {
	out := []ModuleTimeRow{}
	for _, r := range g.rows {
		r.Modules = len(r.paths)
		out = append(out, r.ModuleTimeRow)
	}
	slices.SortFunc(out, func(a, b ModuleTimeRow) int {
		return cmp.Or(cmp.Compare(b.MS, a.MS), compareNames(textOf(a.Key), textOf(b.Key)))
	})
	if top == 0 {
		return out
	}
	out, left := Part(out, top)
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
