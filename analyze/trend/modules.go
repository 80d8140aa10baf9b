package trend

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// ModuleChange is by how many bytes one module's part of a category changed at a jump of the value.
type ModuleChange struct {
	Category   schemas.Category `json:"category"`
	Module     *string          `json:"module"` // null if the blocks belong to no known module
	DeltaBytes int64            `json:"delta_bytes"`
}

// ModuleTables lists the tables that [Step.Attribute] needs.
const ModuleTables = grouping.Tables

// mostModules is the largest number of modules listed for one jump of the value.
const mostModules = 5

// Attributed returns the category whose modules explain a jump of the value, or "" if the value has no category.
func (s *Step) Attributed(value compare.Metric) schemas.Category {
	switch {
	case value.Name == compare.MetricCategory:
		return value.Of
	case len(s.Categories) > 0:
		return s.Categories[0].Category
	}
	return ""
}

// Attribute finds the modules whose bytes of a category changed at a jump of the value, using the tables of the runs
// before and after. If some modules of one parent grow and others shrink, Attribute reports the parent: a module
// inserted among numbered modules changes the names of all later ones.
func (s *Step) Attribute(category schemas.Category, was, is *schemas.Tables) {
	bytes := moduleChanges(category, was, is)
	shrink, grow := map[string]bool{}, map[string]bool{}
	for name, d := range bytes {
		shrink[parentOf(name)] = shrink[parentOf(name)] || d < 0
		grow[parentOf(name)] = grow[parentOf(name)] || d > 0
	}
	together := map[string]int64{}
	for name, d := range bytes {
		if p := parentOf(name); p != "" && shrink[p] && grow[p] {
			name = p
		}
		together[name] += d
	}
	for name, d := range together {
		if d != 0 {
			s.Modules = append(s.Modules, ModuleChange{category, identity.OrNull(name), d})
		}
	}
	slices.SortFunc(s.Modules, func(a, b ModuleChange) int {
		return cmp.Or(cmp.Compare(magnitude(b.DeltaBytes), magnitude(a.DeltaBytes)), cmp.Compare(a.DeltaBytes, b.DeltaBytes),
			compareNames(a.Module, b.Module))
	})
	s.Modules = s.Modules[:min(len(s.Modules), mostModules)]
}

// parentOf returns the path of a module's parent: the path without its last name. parentOf returns "" for a path of one
// name.
func parentOf(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }

// moduleChanges returns, by module, how many more bytes of a category run is has at its peak than run was.
func moduleChanges(category schemas.Category, was, is *schemas.Tables) map[string]int64 {
	bytes := map[string]int64{}
	for i, in := range []*schemas.Tables{was, is} {
		run, err := grouping.BreakdownBy(*in, memory.At{}, grouping.By{Dimensions: []grouping.Dimension{
			grouping.DimensionCategory, grouping.DimensionModule}})
		if err != nil || len(run.Devices) == 0 {
			return nil
		}
		main := slices.MaxFunc(run.Devices, func(a, b grouping.DeviceBy) int {
			return cmp.Compare(a.AllocatedBytes, b.AllocatedBytes)
		})
		for _, row := range main.Rows {
			if row.Key == nil || *row.Key != category {
				continue
			}
			for _, m := range row.Rows {
				name := ""
				if m.Key != nil {
					name = *m.Key
				}
				bytes[name] += int64(2*i-1) * m.Bytes
			}
		}
	}
	return bytes
}

func compareNames(a, b *string) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}
