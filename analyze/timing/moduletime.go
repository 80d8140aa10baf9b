package timing

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// ModuleTimeTables lists the tables that [ModuleTimes] needs.
const ModuleTimeTables = schemas.WantTimes | schemas.WantModuleTimes

// ModuleTimeSchema is the version of [ModuleTimeDocument].
const ModuleTimeSchema = "dpsight.time/1"

// ModuleTimeBy says how the time of modules is grouped into rows.
type ModuleTimeBy struct {
	Dimension grouping.Dimension // grouping by module, class or role
	Depth     int                // how many names of a path distinguish modules; 0 = whole paths
	Fold      bool               // like modules that differ by their number are one row
	Top       int                // rows beyond the longest Top are merged; 0 = no row is merged
}

// Check returns an error for values that have no meaning.
func (b *ModuleTimeBy) Check() error {
	switch {
	case !b.Dimension.NeedsModule():
		return fmt.Errorf("time is known by module, class and role, not by %s", b.Dimension)
	case b.Depth < 0:
		return fmt.Errorf("depth %d is not a number of names, 0 or more", b.Depth)
	case b.Top < 0:
		return fmt.Errorf("top %d is not a number of rows, 0 or more", b.Top)
	case b.Dimension != grouping.DimensionModule && (b.Depth > 0 || b.Fold):
		return fmt.Errorf("depth and fold are of module paths, and the time is by %s", b.Dimension)
	}
	return nil
}

// ModuleTimeDocument is what "dpsight time --format json" prints.
type ModuleTimeDocument struct {
	Schema string             `json:"schema"`
	By     grouping.Dimension `json:"by"`
	Depth  int                `json:"depth"`
	Fold   bool               `json:"fold"`
	Top    int                `json:"top"`
	Runs   []ModuleTimeRun    `json:"runs"`
}

// NewModuleTimeDocument makes the document of these runs, which were all grouped by the same.
func NewModuleTimeDocument(by ModuleTimeBy, runs ...ModuleTimeRun) ModuleTimeDocument {
	if runs == nil {
		runs = []ModuleTimeRun{}
	}
	identity.Distinguish(runs, func(r *ModuleTimeRun) *identity.Identity { return &r.Identity })
	return ModuleTimeDocument{ModuleTimeSchema, by.Dimension, by.Depth, by.Fold, by.Top, runs}
}

// ModuleTimeRun holds the module times of one run by rank. Ranks is empty if there are no times.
type ModuleTimeRun struct {
	identity.Identity
	Ranks    []RankModuleTime `json:"ranks"`
	Warnings []string         `json:"warnings"` // sentences that report makes of Remarks
	Remarks  []Remark         `json:"-"`
}

// RankModuleTime divides the GPU time of one rank's step by module. Module times are measured in instrumented steps,
// which take longer because of the instrumentation. Module times are medians over instrumented steps, scaled phase by
// phase to the bare steps. So a module's share of a phase stays as measured.
type RankModuleTime struct {
	Rank              int32 `json:"rank"`
	BareSteps         int   `json:"bare_steps"`         // number of bare steps to whose phases times are scaled
	InstrumentedSteps int   `json:"instrumented_steps"` // number of instrumented steps from which shares come
	// StepMS is the median bare step. Rows, OutsideMS and ResidueMS sum to it.
	StepMS             *float64          `json:"step_ms"`
	InstrumentedStepMS *float64          `json:"instrumented_step_ms"` // median instrumented step
	Phases             []ModuleTimePhase `json:"phases"`
	Rows               []ModuleTimeRow   `json:"rows"` // rows, the longest first
	// OutsideMS is the scaled time outside of any module's call, as in the loss and the optimizer.
	OutsideMS float64 `json:"outside_ms"`
	// ResidueMS is the rest of the bare step's time: the difference between the median step and the medians of its
	// phases, and phases that no instrumented step has.
	ResidueMS *float64 `json:"residue_ms"`
}

// ModuleTimePhase is one phase's time in both kinds of steps.
type ModuleTimePhase struct {
	Phase          string   `json:"phase"`
	BareMS         *float64 `json:"bare_ms"`         // median; null for recompute, which bare steps count as backward
	InstrumentedMS float64  `json:"instrumented_ms"` // sum of the modules' medians
	OutsideMS      float64  `json:"outside_ms"`      // time outside of modules, scaled
	Scale          float64  `json:"scale"`
}

// ModuleTimeRow is the scaled time of modules, without the time of the modules that they call.
type ModuleTimeRow struct {
	Key     *string `json:"key"`     // name of the row; null for others
	Others  int     `json:"others"`  // number of values that this row merges; 0 = the row has one value
	Modules int     `json:"modules"` // number of paths, cut to the depth, that the row covers
	MS      float64 `json:"ms"`
	HookMS  float64 `json:"hook_ms"` // part of MS in a DP hook's norms and per-sample gradients
	// Phases divides MS by phase; its times sum to MS.
	Phases map[string]float64 `json:"phases"`
}

// ModuleTimes divides the time of a run's step by module, for each rank.
func ModuleTimes(in schemas.Tables, by ModuleTimeBy) ModuleTimeRun {
	run := ModuleTimeRun{Identity: identity.Of(&in), Ranks: []RankModuleTime{}, Warnings: []string{}}
	if why := noModuleTimes(&in); why != 0 {
		run.Remarks = []Remark{{Kind: why}}
		return run
	}
	for rank, rows := range ByRank(in.ModuleTimes) {
		r, remarks := rankModuleTime(&in, rank, rows, by)
		if r.StepMS != nil { // a rank whose times of modules are unknown has no rows
			run.Ranks = append(run.Ranks, r)
		}
		run.Remarks = append(run.Remarks, remarks...)
	}
	slices.SortFunc(run.Ranks, func(a, b RankModuleTime) int { return cmp.Compare(a.Rank, b.Rank) })
	return run
}

func ByRank(rows []schemas.ModuleTime) map[int32][]schemas.ModuleTime {
	m := map[int32][]schemas.ModuleTime{}
	for _, r := range rows {
		m[r.Rank] = append(m[r.Rank], r)
	}
	return m
}

func rankModuleTime(in *schemas.Tables, rank int32, times []schemas.ModuleTime, by ModuleTimeBy) (RankModuleTime,
	[]Remark) {
	s, remarks := ScaleTimes(in, rank, times)
	groups := newTimeGroups(in, rank, by)
	for _, r := range s.Shares {
		if r.Module != 0 {
			groups.add(r)
		}
	}
	s.Rows = groups.list(by.Top)
	return s.RankModuleTime, remarks
}
