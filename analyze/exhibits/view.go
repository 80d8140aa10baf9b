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

// ViewTables lists the tables that a [View] needs.
const ViewTables = timeline.CategoryTables | ladder.Tables | grouping.Tables

// A View has the data about a run that figures show and that the run's summary lacks. A field is nil if the run does
// not have the data.
type View struct {
	Step   *Step // the step with the peak
	Whole  *Step // all that was recorded; nil if the caller did not ask for it
	Rungs  []ladder.Rung
	Matrix *Matrix
}

// ViewOf returns a view of the run's main device at its peak, and, if whole is true, also over all recorded steps.
// ledgers must belong to the same run.
func ViewOf(in *schemas.Tables, s *analyze.Summary, ledgers *memory.Ledgers, whole bool) *View {
	r := reader{in, s, ledgers}
	v := &View{Step: r.step(), Rungs: r.rungs(), Matrix: r.matrix()}
	if whole {
		v.Whole = r.whole()
	}
	return v
}

// A reader has what [ViewOf] reads of one run.
type reader struct {
	in      *schemas.Tables
	summary *analyze.Summary
	ledgers *memory.Ledgers
}

// rungs returns the rungs of the device's memory at the allocator's peak that contain no further rungs, with allocated
// as one rung; nil if NVML was not sampled.
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

// A Matrix divides the bytes of a peak in two ways at once, as a breakdown by role and op does: by the role of their
// module, and by the operation that keeps them for backward.
type Matrix struct {
	Cells []MatrixCell // cells, with the roles that have the most bytes first
	// Rows and Columns are the roles and operations that a figure has room for, the largest first, as [MatrixCell.Row]
	// and [MatrixCell.Column] name them. An empty name stands for all further roles or operations.
	Rows, Columns []string
	Peak          int64
}

// A MatrixCell has the bytes of one role and one operation. An unknown role or operation has an empty name.
type MatrixCell struct {
	Role, Op string
	Bytes    int64
}

// Row returns the role under which a figure shows a cell. The role that Row returns is "loss" for the operations of a
// loss, which belongs to no module of the model, and empty if no role is known.
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

// Column returns the operation under which a figure shows a cell. A linear layer counts as one operation, with a bias
// or without.
func (c MatrixCell) Column() string {
	switch c.Op {
	case "AddmmBackward0", "MmBackward0":
		return "LinearBackward0"
	}
	return c.Op
}

// A figure shows at most mostRoles roles and mostOps operations, and none with less than leastOfMatrix of the peak.
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

// Sum returns the bytes in the figure's cell of a row and a column.
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

// Largest returns the figure's cell with the most bytes.
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
