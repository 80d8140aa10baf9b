package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

var rungColumns = slices.Concat(machineColumns, []table.Column{{Key: "uuid", For: table.Programs},
	{Key: "at", For: table.Programs}, {Key: "time_ns", For: table.Programs},
	{Title: "Rung", Key: "rung"}, {Key: "in", For: table.Programs}, {Title: "MiB", Key: "bytes", Right: true},
	{Title: "%", Key: "percent", Right: true}, {Title: "Known how", Key: "how"}})

// LadderTables returns a table for each moment of each GPU of each run, and a table of the runs that have none. Each
// carries the whole document.
func LadderTables(doc ladder.Document) []table.Table {
	doc = tellLadders(doc)
	tables := []table.Table{}
	for i := range doc.Runs {
		r := &doc.Runs[i]
		some := false
		for k := range r.GPUs {
			g := &r.GPUs[k]
			for j := range g.Moments {
				tables = append(tables, ladderTable(r, g, &g.Moments[j]))
				some = true
			}
		}
		if !some {
			notes := append(slices.Clone(r.Warnings), sourceNotes(&r.Identity)...)
			tables = append(tables, table.Table{Title: fmt.Sprintf("%s: no moment to explain", identified(&r.Identity)),
				Columns: rungColumns, Notes: notes})
		}
	}
	if len(tables) == 0 {
		tables = append(tables, table.Table{Title: "Device memory", Columns: rungColumns})
	}
	tellRules(tables, len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

func ladderTable(r *ladder.Run, g *ladder.GPULadder, m *ladder.Moment) table.Table {
	t := table.Table{Title: fmt.Sprintf("%s, %s, %s", identified(&r.Identity), ladderGPU(g), ladderMoment(m)),
		Columns: rungColumns}
	machine := machineCells(&r.Identity, table.Optional(m.Device, table.Text),
		table.Optional(m.Rank, func(n int32) table.Cell {
			return table.Count(int64(n))
		}))
	depth, whole := map[string]int{}, int64(0)
	for i := range m.Rungs {
		rung := &m.Rungs[i]
		in := table.Absent()
		if rung.In != nil {
			in, depth[rung.Rung] = table.Text(*rung.In), depth[*rung.In]+1
		}
		if whole == 0 && rung.Bytes != nil { // the whole is the device's memory if known, else torch's reserved
			whole = *rung.Bytes
		}
		share := table.Absent()
		if rung.Bytes != nil {
			share = percent(*rung.Bytes, whole)
		}
		// No-break spaces indent the rungs, since every output format keeps them.
		name := table.Cell{Text: strings.Repeat("\u00a0\u00a0", depth[rung.Rung]) + figure.RungTitle(rung.Rung),
			Value: rung.Rung}
		t.Rows = append(t.Rows, append(slices.Clone(machine), table.Optional(g.UUID, table.Text), table.Text(m.At),
			table.Optional(m.TimeNS, table.Count),
			name, in, table.Optional(rung.Bytes, table.Bytes), share, table.Text(rung.How)))
	}
	t.Notes = append(t.Notes, m.Notes...)
	if m.DriverReserveBytes != nil {
		t.Notes = append(t.Notes, fmt.Sprintf("NVML's device used excludes the driver's reserve, %s MiB",
			units.InMiB(*m.DriverReserveBytes)))
	}
	if m.OtherProcesses != nil && *m.OtherProcesses > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("other processes on the GPU: %d", *m.OtherProcesses))
	}
	if m.At == ladder.DevicePeak && len(g.OutsideTorch) > 1 {
		t.Notes = append(t.Notes, outsideNote(g))
	}
	t.Notes = append(t.Notes, r.Warnings...)
	t.Notes = append(t.Notes, runSources(&r.Identity)...)
	return t
}

func ladderGPU(g *ladder.GPULadder) string {
	var names []string
	for i := range g.Devices {
		names = append(names, g.Devices[i].Device+rank(g.Devices[i].Rank))
	}
	s := strings.Join(names, " and ")
	if g.GPU != nil {
		s = fmt.Sprintf("%s (%s)", s, *g.GPU)
	}
	return s
}

func ladderMoment(m *ladder.Moment) string {
	s := "at the device's peak"
	switch m.At {
	case ladder.RecordedPeak:
		s = "at the device's highest where events were recorded"
	case ladder.AllocatorPeak:
		s = "at the allocator's peak"
		if m.Rank != nil && *m.Rank != 0 {
			s += rank(*m.Rank)
		}
	}
	if m.Event != nil {
		return s + ", " + moment(&memory.Moment{Event: *m.Event, Step: m.Step, Phase: m.Phase})
	}
	return s + where(m.Step, m.Phase)
}

func where(step *int64, phase *string) (s string) {
	if step != nil {
		s += fmt.Sprintf(", step %d", *step)
	}
	if phase != nil {
		s += ", " + *phase
	}
	return s
}

// outsideNote explains how the memory outside torch was determined.
func outsideNote(g *ladder.GPULadder) string {
	const most = 6
	var levels []string
	for i := range g.OutsideTorch {
		l := &g.OutsideTorch[i]
		if i >= most {
			levels = append(levels, fmt.Sprintf("%d more", len(g.OutsideTorch)-most))
			break
		}
		at := strings.TrimPrefix(where(l.Step, l.Phase), ", ")
		if at != "" {
			at = " (" + at + ")"
		}
		levels = append(levels, units.InMiB(l.Bytes)+at)
	}
	return "outside torch, in MiB, each time it changed: " + strings.Join(levels, "; ")
}
