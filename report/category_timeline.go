package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// shownCategories is the number of categories with a column in the printed table of points, so that a line fits a
// terminal. The table of maxima has the other categories too, and programs get all of them.
const shownCategories = 5

// CategoryTimelineTables returns two tables for each device of each run (the categories' maxima, and the points), and
// one table that lists the runs without a timeline. Each carries the whole document.
func CategoryTimelineTables(doc timeline.CategoryTimelineDocument) []table.Table {
	doc = tellTimelines(doc)
	var tables []table.Table
	var empty []*memory.BreakdownRun
	for i := range doc.Runs {
		r := &doc.Runs[i]
		if len(r.Devices) == 0 {
			empty = append(empty, &memory.BreakdownRun{Identity: r.Identity})
		}
		for k := range r.Devices {
			d := &r.Devices[k]
			tables = append(tables, maximaTable(r, d), pointsTable(r, d))
		}
	}
	if len(empty) > 0 || len(tables) == 0 {
		tables = append(tables, emptyTable(empty))
	}
	tellRules(tables, len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

func timelineTitle(r *timeline.CategoryTimelineRun, d *timeline.DeviceTimeline, what string) string {
	return fmt.Sprintf("%s, %s%s, events %s to %s: %s", identified(&r.Identity), d.Device, rank(d.Rank),
		table.Count(d.FromEvent).Text, table.Count(d.ToEvent).Text, what)
}

// maximaTable has a row for each category: its maximum, the moment of the maximum, and its bytes at the run's peak.
func maximaTable(r *timeline.CategoryTimelineRun, d *timeline.DeviceTimeline) table.Table {
	t := table.Table{Title: timelineTitle(r, d, "each category's own maximum"),
		Columns: []table.Column{{Title: "Category"}, {Title: "Own maximum MiB", Right: true},
			{Title: "Step", Right: true}, {Title: "Phase"}, {Title: "After event", Right: true},
			{Title: "Allocated then MiB", Right: true}, {Title: "At the run's peak MiB", Right: true}}}
	row := func(name string, most int64, at *memory.Moment, allocated, atPeak int64) {
		t.Rows = append(t.Rows, []table.Cell{table.Text(name), table.Bytes(most), table.Optional(at.Step, table.Count),
			table.Optional(at.Phase, table.Text),
			table.Count(at.Event), table.Bytes(allocated), table.Bytes(atPeak)})
	}
	for i := range d.Categories {
		c := &d.Categories[i]
		row(string(c.Category), c.MaxBytes, &c.At, c.AllocatedBytes, c.AtPeakBytes)
	}
	row("allocated", d.PeakBytes, &d.PeakAt, d.PeakBytes, d.RunPeakBytes)
	t.Notes = append(t.Notes, fmt.Sprintf("the run's peak: %s; categories have their maxima at different moments, so "+
		"these do not sum to it",
		moment(&d.RunPeakAt)),
		conservationSentence(&d.Conservation, nil))
	t.Notes = append(t.Notes, d.Warnings...)
	t.Notes = append(t.Notes, r.Warnings...)
	t.Notes = append(t.Notes, runSources(&r.Identity)...)
	return t
}

// pointsTable has a row for each point of the timeline.
func pointsTable(r *timeline.CategoryTimelineRun, d *timeline.DeviceTimeline) table.Table {
	t := table.Table{Title: timelineTitle(r, d, "allocated"), Columns: []table.Column{{Title: "Events", Right: true},
		{Title: "Step", Right: true}, {Title: "Phase"},
		{Title: "Lowest MiB", Right: true}, {Title: "Highest MiB", Right: true}}}
	largest := make([]int, len(d.Categories))
	for i := range largest {
		largest[i] = i
	}
	slices.SortStableFunc(largest, func(a, b int) int {
		return cmp.Compare(d.Categories[b].MaxBytes, d.Categories[a].MaxBytes)
	})
	largest = largest[:min(len(largest), shownCategories)]
	for _, c := range largest {
		t.Columns = append(t.Columns, table.Column{Title: string(d.Categories[c].Category), Right: true})
	}
	for i := range d.Points {
		p := &d.Points[i]
		events := table.Count(p.FromEvent)
		if p.ToEvent > p.FromEvent {
			events = table.Text(events.Text + "–" + table.Count(p.ToEvent).Text)
		}
		cells := []table.Cell{events, table.Optional(p.Step, table.Count), table.Optional(p.Phase, table.Text),
			table.Bytes(p.LowBytes), table.Bytes(p.HighBytes)}
		for _, c := range largest {
			cells = append(cells, table.Bytes(p.MaxBytes[c]))
		}
		t.Rows = append(t.Rows, cells)
	}
	t.Notes = append(t.Notes, "step and phase are of the highest total; each category shows its own highest within the "+
		"events of the row")
	if n := len(d.Categories) - len(largest); n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("left out %d smaller categories: CSV and JSON have all", n))
	}
	return t
}

// CategoryTimelineRecords returns the points for programs: a row for each point, with two columns for each
// category. The columns are the same for all runs.
func CategoryTimelineRecords(doc timeline.CategoryTimelineDocument) table.Table {
	doc = tellTimelines(doc)
	t := table.Table{Columns: slices.Clone(machineColumns), Document: doc}
	for _, k := range []string{"from_event", "to_event", "step", "phase", "low_bytes", "low_event", "high_bytes",
		"high_event"} {
		t.Columns = append(t.Columns, table.Column{Key: k})
	}
	for _, suffix := range []string{"_bytes", "_max_bytes"} {
		for _, c := range schemas.Categories {
			t.Columns = append(t.Columns, table.Column{Key: string(c) + suffix})
		}
	}
	t.Stream = func(yield func([]table.Cell) bool) {
		for i := range doc.Runs {
			r := &doc.Runs[i]
			if len(r.Devices) == 0 {
				row := machineCells(&r.Identity, table.Absent(), table.Absent())
				if !yield(append(row, make([]table.Cell, len(t.Columns)-len(row))...)) {
					return
				}
			}
			for k := range r.Devices {
				d := &r.Devices[k]
				place := map[schemas.Category]int{}
				for n := range d.Categories {
					place[d.Categories[n].Category] = n
				}
				for n := range d.Points {
					if !yield(pointRecord(r, d, &d.Points[n], place)) {
						return
					}
				}
			}
		}
	}
	return t
}

func pointRecord(r *timeline.CategoryTimelineRun, d *timeline.DeviceTimeline, p *timeline.TimelinePoint,
	place map[schemas.Category]int) []table.Cell {
	number := func(n int64) table.Cell { return table.Cell{Value: n} } // formatting for people would take most time
	row := append(machineCells(&r.Identity, table.Text(d.Device), number(int64(d.Rank))), number(p.FromEvent),
		number(p.ToEvent),
		table.Optional(p.Step, number), table.Optional(p.Phase, table.Text), number(p.LowBytes), number(p.LowEvent),
		number(p.HighBytes), number(p.HighEvent))
	row = slices.Grow(row, 2*len(schemas.Categories))
	for _, bytes := range [][]int64{p.Bytes, p.MaxBytes} {
		for _, c := range schemas.Categories {
			var b int64
			if n, ok := place[c]; ok {
				b = bytes[n]
			}
			row = append(row, number(b))
		}
	}
	return row
}
