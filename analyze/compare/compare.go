package compare

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/repeats"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/near"
)

// Schema is the version of [Document].
const Schema = "dpsight.compare/1"

// Document is what "dpsight compare --format json" prints: a pivot of one value over runs, and for two runs all
// their values side by side.
type Document struct {
	Schema string   `json:"schema"`
	Value  string   `json:"value"` // name of a metric: "peak", "category:gradients"
	Unit   Unit     `json:"unit"`
	Rows   []string `json:"rows"` // the parameters whose values make a row
	Cols   []string `json:"cols"`
	// Baseline is the run that all cells are compared with, or the parameter values of the row or column that all other
	// rows or columns are compared with.
	Baseline Baseline      `json:"baseline"`
	Cells    []CompareCell `json:"cells"` // the cells, row by row
	// Differences is filled only if exactly two runs are compared.
	Differences []Difference        `json:"differences"`
	Runs        []identity.Identity `json:"runs"`
	Warnings    []string            `json:"warnings"` // sentences that report makes of the fields below
	Twins       []string            `json:"-"`        // bare runs whose full runs are compared here
	Mixed       []string            `json:"-"`        // the facts in which the runs of one cell differ
	Said        []Said              `json:"-"`        // remarks on the cells
	SaidOfBase  []Said              `json:"-"`        // remarks on a baseline that is not among the runs
}

// Baseline says what a comparison's cells are compared with: one run, or the row or column with certain parameter
// values.
type Baseline struct {
	RunID *string           `json:"run_id"`
	Match map[string]string `json:"match"` // parameters of the baseline: {"method":"vanilla"}; null if a run was named
	Label string            `json:"label"`
}

// CompareCell is one cell of the pivot. Value is the median over the cell's runs that ended well. For bytes, Value is
// the lower of the middle two, as in a [Cell], so that one run had exactly this value.
type CompareCell struct {
	Row    map[string]*string `json:"row"` // values of the parameters; null where the runs lack one
	Col    map[string]*string `json:"col"`
	RunIDs []string           `json:"run_ids"` // ids of the runs; empty for a cell without runs
	Failed []FailedRun        `json:"failed"`
	N      int                `json:"n"` // number of runs that have the value
	// Experiments is set if the runs of the cell belong to several experiments, and is then their number. A cell of
	// several experiments has no Value.
	Experiments int      `json:"experiments,omitempty"`
	Value       *float64 `json:"value"`
	Low         *float64 `json:"low"`
	High        *float64 `json:"high"`
	Delta       *float64 `json:"delta"`
	Ratio       *float64 `json:"ratio"`
	// P is the p-value of a rank test of the cell's times against the baseline cell's. P is nil unless both cells
	// have several runs.
	P          *float64 `json:"p,omitempty"`
	IsBaseline bool     `json:"is_baseline"`
	Marks      []string `json:"marks"` // labels on the source of the runs: "predicted (phantom h200)", "bare"

	values []float64 // the values of the runs
}

// FailedRun is a run of a cell that did not end well. The figures of a failed run cover only the time until it ended,
// so no median includes them.
type FailedRun struct {
	RunID  string `json:"run_id"`
	Status string `json:"status"`
}

// Options say what to compare.
type Options struct {
	Value Metric
	// Rows and Cols are the parameters or facts (torch, GPU, source, name) that become rows and columns. If nil,
	// Compare chooses among those that differ.
	Rows, Cols []string
	// Each gives each run its own row, if neither rows nor columns are requested.
	Each bool
	// Run is the run to compare every cell with. If Run is nil, Match, a value of a row's or column's parameter, names
	// the row or column to compare with. Without Run and Match, the baseline is the row or column that Prefer (a
	// suite's baseline) names, else the vanilla one, else the first.
	Run    *analyze.Summary
	Match  map[string]string
	Prefer map[string]any
}

// Compare makes a pivot of runs. Compare also writes into the summaries the values that distinguish them.
func Compare(summaries []analyze.Summary, o Options) (Document, error) {
	doc := Document{Schema: Schema, Value: o.Value.String(), Unit: o.Value.Unit(), Rows: []string{},
		Cols: []string{}, Cells: []CompareCell{},
		Differences: []Difference{}, Runs: []identity.Identity{}, Warnings: []string{}}
	runs, left, lent := BesideTwins(summaries, o.Value)
	if o.Each && len(left) > 0 {
		runs, left = nil, nil
		for i := range summaries {
			runs = append(runs, &summaries[i])
		}
	}
	tellCommands(runs)
	placed := placing(analyze.Once(repeats.Placed))
	tellOrigins(runs, placed)
	for _, r := range runs {
		doc.Runs = append(doc.Runs, r.Identity)
	}
	identity.Distinguish(doc.Runs, func(id *identity.Identity) *identity.Identity { return id })
	if len(runs) == 0 || len(runs) == 1 && (o.Run == nil || o.Run.RunID == runs[0].RunID) {
		return doc, errors.New("one run has nothing to be compared with")
	}
	if err := checkAxes(runs, slices.Concat(o.Rows, o.Cols)); err != nil {
		return doc, err
	}
	if !slices.ContainsFunc(runs, func(r *analyze.Summary) bool { return o.Value.ValueIn(r) != nil }) {
		return doc, NoValue(runs, o.Value)
	}
	if two := pairOf(runs, &o); two != nil && o.Rows == nil && o.Cols == nil {
		doc.Differences = differencesOf(two[0], two[1])
		o.Run = two[0]
	}
	p := pivot{value: o.Value, run: o.Run, lent: lent, placed: placed, pair: len(doc.Differences) > 0}
	rows, cols, mixed := chooseAxes(runs, o.Rows, o.Cols, placed)
	if o.Each && o.Rows == nil && o.Cols == nil {
		rows, cols, mixed = eachRun(runs, placed), nil, nil
		if o.Run == nil && o.Match == nil {
			p.run = ownBaseline(runs, o.Prefer)
		}
	}
	p.rows, p.cols = newAxis(runs, rows), newAxis(runs, cols)
	doc.Rows, doc.Cols = append(doc.Rows, rows...), append(doc.Cols, cols...)
	var err error
	match := o.Match
	if match == nil {
		match = p.preferred(runs, o.Prefer)
	}
	if doc.Baseline, err = p.baseline(runs, match); err != nil {
		return doc, err
	}
	p.fill(runs)
	doc.Cells = append(doc.Cells, p.cells...)
	doc.Twins, doc.Mixed, doc.Said = left, mixed, p.said
	if b := p.run; b != nil && !slices.ContainsFunc(runs, func(r *analyze.Summary) bool { return r.RunID == b.RunID }) {
		for _, r := range RemarksOf(b) { // the baseline has no cell of its own for its remarks
			doc.SaidOfBase = append(doc.SaidOfBase, Said{r, []string{b.Title()}})
		}
	}
	return doc, nil
}

// BesideTwins removes the bare runs of experiments that were also recorded in full, and returns their ids: the purpose
// of these bare runs is to show what recording costs. A full run without energy takes the energy of its bare twin,
// which has an unbroken series of steps. lent has the cells of the full runs that took energy.
func BesideTwins(summaries []analyze.Summary, value Metric) (runs []*analyze.Summary, left []string,
	lent map[string]*Cell) {
	lent = map[string]*Cell{}
	cells, twins := withoutTwins(Cells(summaries))
	of := map[string]*Cell{}
	for i := range cells {
		for _, id := range cells[i].RunIDs {
			of[id] = &cells[i]
		}
	}
	if len(of) < 2 { // a user who compares a run with its bare twin wants to see both
		of, twins = nil, nil
	}
	for i := range summaries {
		s, c := &summaries[i], of[summaries[i].RunID]
		if c == nil && of != nil {
			continue
		}
		if c != nil && value.Name == MetricEnergy && s.JoulesPerSample == nil && c.JoulesPerSample != nil {
			s = new(*s) // a copy, so that the run itself does not get the lent energy
			s.JoulesPerSample, lent[s.RunID] = c.JoulesPerSample, c
		}
		runs = append(runs, s)
	}
	return runs, twins, lent
}

// chooseAxes completes the requested axes with the other keys that distinguish the runs. The first key becomes the
// rows, the next key that [fills] the columns becomes the columns, and further keys become rows within rows. If both
// axes were requested, runs that differ in the remaining keys share cells, and chooseAxes returns these keys as mixed.
func chooseAxes(runs []*analyze.Summary, rows, cols []string, placed placing) (r, c, mixed []string) {
	some := representatives(runs, slices.Concat(rows, cols))
	more := differing(some, slices.Concat(rows, cols), placed)
	askedRows, askedCols := rows != nil, cols != nil
	if !askedRows && len(more) > 0 {
		rows, more = more[:1], more[1:]
	}
	if i := slices.IndexFunc(more, func(k string) bool {
		if k == "run" {
			return fills(runs, rows, k)
		}
		return fills(some, rows, k)
	}); !askedCols && i >= 0 {
		cols, more = more[i:i+1], slices.Concat(more[:i], more[i+1:])
	}
	if !askedRows {
		rows, more = append(slices.Clone(rows), more...), nil
	}
	if len(rows) == 0 {
		rows = []string{"name"}
	}
	return rows, cols, more
}

// eachRun returns row keys that give each run a row of its own: only the name if no two runs share a name.
func eachRun(runs []*analyze.Summary, placed placing) []string {
	rows := []string{"name"}
	rows = append(rows, differing(runs, rows, placed)...)
	seen := map[string]bool{}
	for _, r := range runs {
		seen[keyOf(r, rows)] = true
	}
	if len(seen) < len(runs) && !slices.Contains(rows, "run") {
		rows = append(rows, "run")
	}
	return rows
}

// ownBaseline returns the run that the others are compared with if the user named no baseline.
func ownBaseline(runs []*analyze.Summary, match map[string]any) *analyze.Summary {
	all := make([]analyze.Summary, len(runs))
	for i, r := range runs {
		all[i] = *r
	}
	if i := DefaultBaseline(all, match); i >= 0 {
		return runs[i]
	}
	return nil
}

// fills reports whether a table with columns by key would have runs in at least half of its cells. A parameter that
// only one method has would make columns of dashes, and no column would hold two values to compare.
func fills(runs []*analyze.Summary, rows []string, key string) bool {
	r, c, cells := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, run := range runs {
		row, col := keyOf(run, rows), keyOf(run, []string{key})
		r[row], c[col], cells[row+"\x01"+col] = true, true, true
	}
	return 2*len(cells) >= len(r)*len(c)
}

// NoValue returns an error that says why no run has a value of the metric.
func NoValue(runs []*analyze.Summary, m Metric) error {
	if m.Name == MetricPhase || m.Name == MetricPhasePeak {
		var phases []string
		for _, r := range runs {
			for i := range r.Phases.Phases {
				if p := r.Phases.Phases[i].Phase; !slices.Contains(phases, p) {
					phases = append(phases, p)
				}
			}
		}
		if len(phases) > 0 && !slices.Contains(phases, m.Of) {
			return fmt.Errorf("no run has a phase %q%s", m.Of, near.Guess(m.Of, phases))
		}
	}
	if !slices.ContainsFunc(runs, func(r *analyze.Summary) bool {
		return r.Source == schemas.Measured
	}) && m.Unit() != UnitBytes {
		return fmt.Errorf("no run has a value for %s: none was measured, and only measured runs have times", m)
	}
	return fmt.Errorf("no run has a value for %s", m)
}
