package report

import (
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/table"
)

// The CSV files for tables with a column for each run. In such a file each row is one item of one run, since programs
// can group rows more easily than transpose a table.

func tidyConfiguration(s *compare.Study) []table.Table {
	t := table.Table{Columns: append(append([]table.Column{}, machineColumns...), table.Column{Key: "setting",
		For: table.Programs}, table.Column{Key: "value", For: table.Programs})}
	for i := range s.Cells {
		c := &s.Cells[i]
		for _, f := range c.Facts() {
			t.Rows = append(t.Rows, append(machineCells(&c.Identity, table.Absent(), table.Absent()),
				table.Text(f.What), table.Text(f.Value)))
		}
	}
	return []table.Table{t}
}

func tidyCategories(s *compare.Study) []table.Table {
	var runs []memory.BreakdownRun
	for i := range s.Cells {
		runs = append(runs, s.Cells[i].Breakdown)
	}
	return BreakdownTables(memory.NewBreakdownDocument(runs...))
}

func tidyOverhead(s *compare.Study, keys []string, rows func(*compare.OverheadRun, func(...table.Cell))) []table.Table {
	t := table.Table{Columns: append(append([]table.Column{}, machineColumns...), table.Column{Key: "baseline",
		For: table.Programs})}
	for _, k := range keys {
		t.Columns = append(t.Columns, table.Column{Key: k, For: table.Programs})
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		device, rank := table.Absent(), table.Absent()
		if d := c.Main(); d != nil {
			device, rank = table.Text(d.Device), table.Count(int64(d.Rank))
		}
		rows(c.Overhead, func(cells ...table.Cell) {
			t.Rows = append(t.Rows, append(append(machineCells(&c.Identity, device, rank),
				table.Text(c.Overhead.Baseline)), cells...))
		})
	}
	return []table.Table{t}
}

func tidyCategoryDeltas(s *compare.Study) []table.Table {
	return tidyOverhead(s, []string{"category", "bytes", "delta_bytes", "delta_percent"}, func(o *compare.OverheadRun,
		row func(...table.Cell)) {
		for _, c := range o.Categories {
			row(table.Text(c.Category), table.Bytes(c.Bytes), table.DeltaBytes(c.DeltaBytes),
				table.Optional(c.DeltaPercent, deltaPercent))
		}
	})
}

func tidyPhaseDeltas(s *compare.Study) []table.Table {
	return tidyOverhead(s, []string{"phase", "ms", "delta_ms", "peak_bytes", "peak_delta_bytes", "delta_step_percent",
		"peak_delta_percent"}, func(o *compare.OverheadRun, row func(...table.Cell)) {
		for _, p := range o.Phases {
			row(table.Text(p.Phase), table.Optional(p.MS, table.Milliseconds), table.Optional(p.DeltaMS,
				table.DeltaMilliseconds),
				table.Optional(p.PeakBytes, table.Bytes), table.Optional(p.PeakDeltaBytes, table.DeltaBytes),
				table.Optional(p.DeltaStepPercent, deltaPercent), table.Optional(p.PeakDeltaPercent, deltaPercent))
		}
	})
}

func tidyPhasePeakDeltas(s *compare.Study) []table.Table {
	return tidyOverhead(s, []string{"phase", "peak_bytes", "peak_delta_bytes", "peak_delta_percent"},
		func(o *compare.OverheadRun, row func(...table.Cell)) {
			for _, p := range o.Phases {
				if p.PeakBytes != nil {
					row(table.Text(p.Phase), table.Bytes(*p.PeakBytes), table.Optional(p.PeakDeltaBytes,
						table.DeltaBytes),
						table.Optional(p.PeakDeltaPercent, deltaPercent))
				}
			}
		})
}

// tidyPhasePeaks returns the phase peaks of each run's main device, as the printed table shows them. phases.csv has all
// devices.
func tidyPhasePeaks(s *compare.Study) []table.Table {
	t := table.Table{Columns: append(append([]table.Column{}, machineColumns...), table.Column{Key: "phase",
		For: table.Programs}, table.Column{Key: "peak_bytes", For: table.Programs})}
	for i := range s.Cells {
		c := &s.Cells[i]
		peaks, d := c.PhasePeaks(), c.Main()
		if d == nil {
			continue
		}
		for k := range c.Phases.Phases {
			p := &c.Phases.Phases[k]
			if bytes, ok := peaks[p.Phase]; ok && p.Device == d.Device && p.Rank == d.Rank {
				t.Rows = append(t.Rows, append(machineCells(&c.Identity, table.Text(d.Device),
					table.Count(int64(d.Rank))), table.Text(p.Phase), table.Bytes(bytes)))
			}
		}
	}
	return []table.Table{t}
}
