package report

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/ranks"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

// mostDiffering is the most parts of a kind that a table lists. The rest share one row.
const mostDiffering = 8

// RanksTables returns a table of all peaks, and for each run with an outlier a table of what it holds more or less of.
// Each table carries the whole document.
func RanksTables(doc ranks.Document) []table.Table {
	tables := []table.Table{RanksTable(doc)}
	for i := range doc.Runs {
		if r := &doc.Runs[i]; r.Outlier != nil && r.Outlier.PartsBytes != nil {
			t := outlierTable(r)
			t.Document = doc
			tables = append(tables, t)
		}
	}
	return tables
}

// RanksTable compares the peaks of each run's devices.
func RanksTable(doc ranks.Document) table.Table {
	t := table.Table{Title: "Peaks by rank", Document: doc, Columns: []table.Column{
		{Title: "Run", Key: "name"},
		{Title: "Rank", Key: "rank", Right: true, Names: true},
		{Title: "Device", Key: "device", Priority: 1},
		{Title: "Allocated MiB", Key: "peak_allocated_bytes", Right: true, Priority: 5},
		{Title: "Reserved MiB", Key: "peak_reserved_bytes", Right: true, Priority: 2},
		{Title: "At step", Key: "step", Right: true},
		{Title: "Phase", Key: "phase"},
		{Title: "Others' median MiB", Key: "others_median_bytes", Right: true, Priority: 3},
		{Title: "Δ MiB", Key: "delta_bytes", Right: true, Priority: 4},
		{Title: "Apart", Key: "apart"},
	}}
	all := of(len(doc.Runs), func(i int) *identity.Identity { return &doc.Runs[i].Identity })
	t.Notes = all.notes()
	var notes runNotes
	for i := range doc.Runs {
		r := &doc.Runs[i]
		for k := range r.Ranks {
			p := &r.Ranks[k]
			t.Rows = append(t.Rows, []table.Cell{all.cell(r.Shown(), &r.Identity), table.Count(int64(p.Rank)),
				table.Text(p.Device), table.Optional(p.AllocatedBytes, table.Bytes),
				table.Optional(p.ReservedBytes, table.Bytes), table.Optional(p.Step, table.Count),
				table.Optional(p.Phase, table.Text), table.Optional(p.OthersMedianBytes, table.Bytes),
				table.Optional(p.DeltaBytes, table.DeltaBytes), apart(p)})
		}
		notes.add(all.badged(r.Shown(), &r.Identity), ranksWords(r))
	}
	t.Notes = append(t.Notes, notes.all()...)
	if slices.ContainsFunc(doc.Runs, func(r ranks.Run) bool { return r.Outlier != nil }) {
		t.Notes = append(t.Notes, fmt.Sprintf("apart: the peak differs from the median of the others by %v %% of it or "+
			"more; of two, the higher one", doc.BoundPercent))
	} else {
		t.ForPrograms("apart")
	}
	hideEmpty(&t)
	return t
}

func apart(p *ranks.Peak) table.Cell {
	if p.Apart {
		return table.Cell{Text: "yes", Value: true}
	}
	return table.Cell{Value: false}
}

// ranksWords say what the peaks of a run's devices show.
func ranksWords(r *ranks.Run) string {
	o, n := r.Outlier, len(r.Ranks)
	switch {
	case r.NotIngested:
		return notIngested
	case n == 0:
		return "no rank used a device: there is nothing to compare"
	case n == 1:
		return "the run has one rank with one device: there is nothing to compare"
	case o == nil:
		return fmt.Sprintf("none of the %d peaks lies apart", n)
	}
	holds := moreOrLess(o.DeltaBytes)
	s := fmt.Sprintf("%s holds %s %s than the median of the other %s", rankWords(r, o.Place),
		table.Size(magnitude(o.DeltaBytes)), holds, units.Plural(n-1, "device", "devices"))
	if n == 2 {
		s = fmt.Sprintf("%s holds %s %s than %s", rankWords(r, o.Place), table.Size(magnitude(o.DeltaBytes)), holds,
			rankWords(r, o.Beside))
	}
	if o.PartsBytes == nil {
		return s + "; without allocator events nothing is known of what that is"
	}
	if *o.PartsBytes != o.DeltaBytes {
		s += fmt.Sprintf("; beside %s it is %s %s at the highest recorded moments", rankWords(r, o.Beside),
			table.Size(magnitude(*o.PartsBytes)), moreOrLess(*o.PartsBytes))
	}
	if len(o.Modules) > 0 {
		p := &o.Modules[0]
		s += fmt.Sprintf(": %s %s of %s", table.Size(magnitude(p.DeltaBytes)), moreOrLess(p.DeltaBytes),
			prose.Words(p.Category))
		if p.Module != "" {
			s += " in " + p.Module
		}
	}
	if len(o.Lines) > 0 && o.Lines[0].Line != "" {
		p := &o.Lines[0]
		s += fmt.Sprintf("; %s asked for %s %s", p.Line, table.Size(magnitude(p.DeltaBytes)), moreOrLess(p.DeltaBytes))
	}
	return s
}

func moreOrLess(delta int64) string {
	if delta < 0 {
		return "less"
	}
	return "more"
}

// rankWords names a device of a run by its rank, or in more detail if that rank has several devices.
func rankWords(r *ranks.Run, p ranks.Place) string {
	several := 0
	for i := range r.Ranks {
		if r.Ranks[i].Rank == p.Rank {
			several++
		}
	}
	if several > 1 {
		return p.Device + rank(p.Rank)
	}
	return fmt.Sprintf("rank %d", p.Rank)
}

// outlierTable compares the peak of a run's outlier with that of another device, by category, by module and by line.
// The rows of each kind sum to the difference of the two peaks.
func outlierTable(r *ranks.Run) table.Table {
	o := r.Outlier
	t := table.Table{Title: fmt.Sprintf("What %s holds %s of than %s in %s", rankWords(r, o.Place),
		moreOrLess(o.DeltaBytes), rankWords(r, o.Beside), identified(&r.Identity)), Columns: []table.Column{
		{Title: "By", Key: "by"},
		{Title: "Part", Key: "part", Names: true},
		{Title: rankWords(r, o.Place) + " MiB", Key: "bytes", Right: true, Priority: 1},
		{Title: rankWords(r, o.Beside) + " MiB", Key: "beside_bytes", Right: true, Priority: 1},
		{Title: "Δ MiB", Key: "delta_bytes", Right: true, Priority: 2},
	}}
	add := func(by, name string, p *ranks.Part) {
		t.Rows = append(t.Rows, []table.Cell{table.Text(by), table.Text(name), table.Bytes(p.Bytes),
			table.Bytes(p.BesideBytes), table.DeltaBytes(p.DeltaBytes)})
	}
	for _, kind := range []struct {
		by    string
		parts []ranks.Part
		name  func(p *ranks.Part) string
	}{
		{"category", o.Categories, func(p *ranks.Part) string { return p.Category }},
		{"module", o.Modules, func(p *ranks.Part) string {
			if p.Module == "" {
				return p.Category + ", no module known"
			}
			return p.Category + ", " + p.Module
		}},
		{"line", o.Lines, func(p *ranks.Part) string {
			switch {
			case p.Line == "":
				return "no line known"
			case p.Source != "":
				return p.Line + ": " + p.Source
			}
			return p.Line
		}},
	} {
		if len(kind.parts) == 1 && kind.by == "line" && kind.parts[0].Line == "" {
			continue // without lines, the row would repeat the whole difference
		}
		first, left := memory.TopAndRest(kind.parts, mostDiffering)
		for i := range first {
			add(kind.by, kind.name(&first[i]), &first[i])
		}
		var rest ranks.Part
		for i := range left {
			rest.Bytes, rest.BesideBytes = rest.Bytes+left[i].Bytes, rest.BesideBytes+left[i].BesideBytes
			rest.DeltaBytes += left[i].DeltaBytes
		}
		if len(left) > 0 {
			add(kind.by, others(len(left)), &rest)
		}
	}
	t.Notes = append(t.Notes, fmt.Sprintf("the parts of each kind sum to a difference of %s; equal parts are "+
		"left out", units.MiB(*o.PartsBytes)))
	t.Notes = append(t.Notes, sourceNotes(&r.Identity)...)
	return t
}
