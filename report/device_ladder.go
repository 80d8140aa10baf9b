package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/table"
)

// deviceLadder returns the picture of the GPUs that NVML sampled during the runs, or nil if NVML sampled no GPU. A note
// names the runs without samples, which are left out.
func (m *Model) deviceLadder() *figure.DeviceLadder {
	f := &figure.DeviceLadder{}
	var left, repeated []string
	var reserves []int64
	for i := range m.Study.Cells {
		c := &m.Study.Cells[i]
		rows := ladderRows(m.Ladders[c.RunID], c.Label, m.badge(c))
		if len(rows) == 0 {
			text := c.Label
			if badge := m.badge(c); badge != "" {
				text += " [" + badge + "]"
			}
			left = append(left, text)
		}
		if len(c.RunIDs) > 1 && len(rows) > 0 {
			repeated = append(repeated, c.Label)
		}
		for k := range rows {
			if d := rows[k].Device; d != nil && d.DriverReserveBytes != nil &&
				!slices.Contains(reserves, *d.DriverReserveBytes) {
				reserves = append(reserves, *d.DriverReserveBytes)
			}
		}
		f.Rows = append(f.Rows, rows...)
	}
	if len(f.Rows) == 0 {
		return nil
	}
	if len(repeated) > 0 {
		f.Notes = append(f.Notes, strings.Join(repeated, ", ")+": the repeat with the median peak")
	}
	f.Notes = append(f.Notes, "at the allocator's peak, the bytes outside torch come from the nearest NVML sample")
	f.Notes = append(f.Notes, "dpsight ladder says how each part is known")
	slices.Sort(reserves)
	for _, n := range reserves {
		f.Notes = append(f.Notes, fmt.Sprintf("NVML's device used excludes the driver's reserve, %s",
			table.Size(n)))
	}
	if len(left) > 0 {
		f.Notes = append(f.Notes, "without NVML samples and left out: "+strings.Join(left, ", "))
	}
	f.Notes = append(f.Notes, m.figureNotes()...)
	return f
}

// ladderRows returns the rows of one run: one for each sampled GPU, and more if several allocators share a GPU.
func ladderRows(run ladder.Run, label, badge string) []figure.LadderRow {
	var rows []figure.LadderRow
	for i := range run.GPUs {
		g := &run.GPUs[i]
		var device *ladder.Moment
		var peaks []*ladder.Moment
		for k := range g.Moments {
			switch at := &g.Moments[k]; at.At {
			case ladder.DevicePeak:
				device = at
			case ladder.AllocatorPeak:
				peaks = append(peaks, at)
			}
		}
		if device == nil {
			continue
		}
		if len(peaks) == 0 {
			peaks = append(peaks, nil)
		}
		for k, peak := range peaks {
			row := figure.LadderRow{Label: label, Badge: badge, Allocator: peak}
			if k == 0 {
				row.Device = device
			}
			if len(run.GPUs) > 1 || len(peaks) > 1 { // several GPUs or allocators are named
				var names []string
				for _, d := range g.Devices {
					if peak == nil || peak.Rank == nil || *peak.Rank == d.Rank && *peak.Device == d.Device {
						names = append(names, fmt.Sprintf("rank %d %s", d.Rank, d.Device))
					}
				}
				row.Label += ", " + strings.Join(names, " and ")
			}
			rows = append(rows, row)
		}
	}
	return rows
}
