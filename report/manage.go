package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
	"github.com/dpsight/dpsight/schemas/units"
)

// UsageSchema is the version of [UsageDocument].
const UsageSchema = "dpsight.usage/1"

// UsageDocument is what "dpsight runs du --format json" prints.
type UsageDocument struct {
	Schema string     `json:"schema"`
	Runs   []UsageRun `json:"runs"` // runs, the largest first
}

// UsageRun has the size of a run's files.
type UsageRun struct {
	RunID string           `json:"run_id"`
	Name  string           `json:"name"`
	Bytes int64            `json:"bytes"`
	Kinds map[string]int64 `json:"kinds"` // see [store.Kinds]; kinds that a run does not have are left out
}

// NewUsageDocument sorts runs by their size on disk and adds up the sizes.
func NewUsageDocument(runs []UsageRun) UsageDocument {
	for i := range runs {
		for _, n := range runs[i].Kinds {
			runs[i].Bytes += n
		}
	}
	slices.SortStableFunc(runs, func(a, b UsageRun) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return UsageDocument{UsageSchema, runs}
}

// Total returns the size of all runs together.
func (d *UsageDocument) Total() UsageRun {
	all := UsageRun{Kinds: map[string]int64{}}
	for i := range d.Runs {
		all.Bytes += d.Runs[i].Bytes
		for k, n := range d.Runs[i].Kinds {
			all.Kinds[k] += n
		}
	}
	return all
}

// UsageTable returns a table of the runs' sizes on disk.
func UsageTable(doc UsageDocument) table.Table {
	t := table.Table{Title: "Disk space (MiB)", Document: doc, Columns: []table.Column{{Title: "Run id", Key: "run_id"},
		{Title: "Name", Key: "name", Priority: 2}, {Title: "All", Key: "bytes", Right: true, Priority: 3}}}
	all := doc.Total()
	kinds := slices.DeleteFunc(slices.Clone(store.Kinds), func(k string) bool { return all.Kinds[k] == 0 })
	for _, k := range kinds {
		t.Columns = append(t.Columns, table.Column{Title: strings.ToUpper(k[:1]) + k[1:], Key: k + "_bytes", Right: true})
	}
	row := func(r *UsageRun) {
		cells := []table.Cell{table.Text(r.RunID), table.Text(r.Name), table.Bytes(r.Bytes)}
		for _, k := range kinds {
			cells = append(cells, table.Bytes(r.Kinds[k]))
		}
		t.Rows = append(t.Rows, cells)
	}
	for i := range doc.Runs {
		row(&doc.Runs[i])
	}
	t.Notes = append(t.Notes, fmt.Sprintf("%s: %s; dpsight runs rm removes runs", units.Plural(len(doc.Runs), "run",
		"runs"), table.Size(all.Bytes)))
	return t
}

// ShownSchema is the version of [ShownDocument].
const ShownSchema = "dpsight.shown/1"

// ShownDocument is what "dpsight runs show --format json" prints.
type ShownDocument struct {
	Schema string     `json:"schema"`
	Runs   []ShownRun `json:"runs"`
}

// ShownRun has a run's row in the list of runs, its manifest, and the documents that refer to it.
type ShownRun struct {
	analyze.RunsRow
	Folder     string            `json:"folder"`
	Bytes      int64             `json:"bytes"` // bytes on disk
	References []store.Reference `json:"references"`
	Manifest   *schemas.Manifest `json:"manifest"`
}

// ShownTables return one table for each run.
func ShownTables(doc ShownDocument) (tables []table.Table) {
	for i := range doc.Runs {
		r := &doc.Runs[i]
		r.Warnings = RunWords(r.Remarks)
		t := table.Table{Title: identified(&r.Identity), Columns: []table.Column{{Title: "What", Key: "what", Names: true},
			{Title: "Value", Key: "value"}}, Notes: slices.Concat(r.Warnings, referenceWords(r.References))}
		add := func(what, value string) {
			if value != "" {
				t.Rows = append(t.Rows, []table.Cell{table.Text(what), table.Text(value)})
			}
		}
		m := r.Manifest
		add("run", m.RunID)
		add("status", strings.TrimSuffix(m.Status+": "+m.Reason, ": "))
		add("tags", strings.Join(r.Tags, " "))
		add("command", identity.ArgumentText(m.Command))
		for _, k := range slices.Sorted(maps.Keys(m.Params)) {
			add(k, identity.TextOf(m.Params[k]))
		}
		bytes := func(n int64) string { return table.Size(n) }
		add("peak allocated", shownOf(r.PeakBytes, bytes))
		add("peak reserved", shownOf(r.PeakReservedBytes, bytes))
		add("step", shownOf(r.StepMS, func(ms float64) string { return table.Milliseconds(ms).Text + " ms" }))
		if m.Suite != nil {
			add("suite", fmt.Sprintf("%s (%s), repetition %d", m.Suite.Name, m.Suite.ID, m.Suite.Repetition))
		}
		add("started", m.Start.UTC().Format(time.RFC3339))
		if m.End != nil {
			add("took", m.End.Sub(m.Start).Round(time.Millisecond).String())
		}
		if m.Git != nil {
			changed := ""
			if m.Git.Dirty {
				changed = " and changes"
			}
			add("revision", m.Git.Revision+changed)
			add("committed", shownOf(m.Git.Committed, func(at time.Time) string { return at.UTC().Format(time.RFC3339) }))
		}
		facts := identity.FactsOf(m)
		for k := range facts {
			if f := &facts[k]; !f.Param {
				add(f.What, f.Value)
			}
		}
		add("host", m.Host.Name)
		add("dpsight", m.Collector.Version)
		add("folder", r.Folder)
		add("on disk", table.Size(r.Bytes))
		tables = append(tables, t)
	}
	for i := range tables {
		tables[i].Document = doc
	}
	return tables
}

func shownOf[T any](v *T, text func(T) string) string {
	if v == nil {
		return ""
	}
	return text(*v)
}

// referenceWords name the documents that refer to runs.
func referenceWords(refs []store.Reference) (words []string) {
	count := map[string]int{}
	var order []string
	for _, r := range refs {
		who := r.Kind + " " + r.Name
		if count[who] == 0 {
			order = append(order, who)
		}
		count[who]++
	}
	for _, who := range order {
		words = append(words, fmt.Sprintf("%s names %s", who, units.Plural(count[who], "run", "runs")+" of these"))
	}
	return words
}

// RemovalWords name the runs that are about to be removed, and their size.
func RemovalWords(runs []store.Run, bytes int64) string {
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	const few = 4
	return fmt.Sprintf("%s, %s (%s)", units.Plural(len(runs), "run", "runs"), table.Size(bytes),
		schemas.Shortlist(ids, few))
}

// RemovalNotes name the documents that refer to runs which are about to be removed.
func RemovalNotes(refs []store.Reference) []string {
	words := referenceWords(refs)
	for i := range words {
		words[i] += ", and will lack them"
	}
	return append(words, "a baseline file keeps the figures of runs that are removed")
}
