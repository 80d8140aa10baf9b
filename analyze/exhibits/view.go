package exhibits

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/schemas"
)

// ViewTables are those that a [View] is of.
const ViewTables = timeline.CategoryTables | ladder.Tables | grouping.Tables

// A View is what figures show of a run that its summary does not have. A field is nil if it is not known of the run.
type View struct {
	Step   *Step // of the peak
	Whole  *Step // everything that was recorded; nil if the caller did not ask for it
	Rungs  []ladder.Rung
	Matrix *Matrix
}

// ViewOf looks at a run's main device at its peak; with whole at all its recorded steps too. The ledgers are the run's.
func ViewOf(in *schemas.Tables, s *analyze.Summary, ledgers *memory.Ledgers, whole bool) *View {
	r := reader{in, s, ledgers}
	v := &View{Step: r.step(), Rungs: r.rungs(), Matrix: r.matrix()}
	if whole {
		v.Whole = r.whole()
	}
	return v
}

// A reader looks at one run.
type reader struct {
	in      *schemas.Tables
	summary *analyze.Summary
	ledgers *memory.Ledgers
}

// rungs are the device's memory at the allocator's peak, without what is part of another rung; nil where NVML was
// not asked.
func (r reader) rungs() (leaves []ladder.Rung) {
	main := r.summary.Main()
	if main == nil || len(r.in.Samples) == 0 {
		return nil
	}
	run, err := ladder.With(r.in, r.ledgers)
	if err != nil {
		return nil
	}
	for i := range run.GPUs {
		for k := range run.GPUs[i].Moments {
			m := &run.GPUs[i].Moments[k]
			if m.At != ladder.AllocatorPeak || *m.Device != main.Device || *m.Rank != main.Rank {
				continue
			}
			if used := m.Rung(ladder.RungDeviceUsed); used == nil || used.Bytes == nil {
				return nil
			}
			for _, r := range m.Rungs {
				whole := r.Rung == ladder.RungDeviceUsed || r.Rung == ladder.RungReserved
				part := r.In != nil && *r.In == ladder.RungAllocated
				if !whole && !part && r.Bytes != nil {
					leaves = append(leaves, r)
				}
			}
		}
	}
	return leaves
}

// A Matrix is the bytes of a peak by the role of the module that they belong to and by the operation that keeps them
// for backward, as a breakdown by role and op has them.
type Matrix struct {
	Cells []MatrixCell // the roles with the most bytes first
	// Rows and Columns are the roles and operations that a figure has room for, the largest first, as [MatrixCell.Row] and
	// [MatrixCell.Column] name them. An empty name stands for all others.
	Rows, Columns []string
	Peak          int64
}

// A MatrixCell has the bytes of one role and one operation; an empty name where it is not known.
type MatrixCell struct {
	Role, Op string
	Bytes    int64
}

// Row is the role that a figure shows a cell under: "loss" for the operations of a loss, which belongs to no module of
// the model; empty for what no role is known of.
func (c MatrixCell) Row() string {
	switch c.Role {
	case "other":
		if strings.Contains(c.Op, "Loss") || strings.HasPrefix(c.Op, "LogSoftmax") {
			return "loss"
		}
		return ""
	case schemas.SharedByModules:
		return ""
	}
	return c.Role
}

// Column is the operation that a figure shows a cell under. A linear layer is one operation, with a bias or without.
func (c MatrixCell) Column() string {
	switch c.Op {
	case "AddmmBackward0", "MmBackward0":
		return "LinearBackward0"
	}
	return c.Op
}

// The roles and operations that a figure shows: so many at most, and none of less than a hundredth of the peak.
const (
	mostRoles     = 7
	mostOps       = 5
	leastOfMatrix = 0.01
)

func (r reader) matrix() *Matrix {
	main := r.summary.Main()
	if main == nil || !r.summary.BrokenDown() {
		return nil
	}
	by := grouping.By{Dimensions: []grouping.Dimension{grouping.DimensionRole, grouping.DimensionOp}}
	run, err := grouping.BreakdownByWith(r.in, memory.At{}, by, r.ledgers)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(run.Devices, func(d grouping.DeviceBy) bool {
		return d.Device == main.Device && d.Rank == main.Rank
	})
	if i < 0 {
		return nil
	}
	d := &run.Devices[i]
	m := &Matrix{Peak: d.AllocatedBytes}
	name := func(key *string) string {
		if key == nil {
			return ""
		}
		return *key
	}
	for _, r := range d.Rows {
		for _, c := range r.Rows {
			m.Cells = append(m.Cells, MatrixCell{name(r.Key), name(c.Key), c.Bytes})
		}
	}
	largest := func(of func(MatrixCell) string, most int) (names []string) {
		sums := map[string]int64{}
		for _, c := range m.Cells {
			sums[of(c)] += c.Bytes
		}
		all := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
			return cmp.Or(cmp.Compare(sums[b], sums[a]), strings.Compare(a, b))
		})
		for _, name := range all {
			if len(names) < most && name != "" && float64(sums[name]) >= leastOfMatrix*float64(m.Peak) {
				names = append(names, name)
			}
		}
		return names
	}
	m.Rows, m.Columns = largest(MatrixCell.Row, mostRoles), largest(MatrixCell.Column, mostOps)
	if len(m.Rows) < 2 || len(m.Columns) < 2 {
		return nil
	}
	m.Rows, m.Columns = append(m.Rows, ""), append(m.Columns, "")
	return m
}

// Sum is what a row and a column of the figure have together.
func (m *Matrix) Sum(row, column string) (sum int64) {
	is := func(name, of string, names []string) bool {
		return name == of || of == "" && !slices.Contains(names, name)
	}
	for _, c := range m.Cells {
		if is(c.Row(), row, m.Rows) && is(c.Column(), column, m.Columns) {
			sum += c.Bytes
		}
	}
	return sum
}

// Largest is the row and the column with the most bytes together.
func (m *Matrix) Largest() (most MatrixCell) {
	for _, row := range m.Rows {
		for _, column := range m.Columns {
			if n := m.Sum(row, column); n > most.Bytes {
				most = MatrixCell{row, column, n}
			}
		}
	}
	return most
}
