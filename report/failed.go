package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report/table"
)

// failedTable has a row for each request that failed because memory was short. A run's peak does not include such
// requests.
func failedTable(s *compare.Study) table.Table {
	t := table.Table{Title: "Requests that failed: out of memory",
		Columns: []table.Column{{Title: "Run id", Key: "run_id", For: table.Programs}, {Title: "Run", Key: "run"},
			{Title: "Device", Key: "device"}, {Title: "Rank", Key: "rank", Right: true, For: table.Programs},
			{Title: "Requested MiB", Key: "requested_bytes", Priority: 4, Right: true},
			{Title: "Module", Key: "module", Priority: 3}, {Title: "Phase", Key: "phase", Priority: 2},
			{Title: "Step", Key: "step", Right: true},
			{Title: "Allocated MiB", Key: "allocated_bytes", Right: true},
			{Title: "Cached MiB", Key: "cached_bytes", Right: true}, {Title: "Requests", Key: "requests", Right: true},
			{Title: "What continued", Key: "went_on", Priority: 1}, {Key: "sentence", For: table.Programs}}}
	all := ofStudy(s)
	t.Notes = all.notes()
	var notes runNotes
	for i := range s.Runs {
		r, label := &s.Runs[i], s.Labels[i]
		for k := range r.Failed {
			f := &r.Failed[k]
			on, sentence := "the script", failedWords(f)
			switch {
			case f.Fatal:
				on = "nothing: the run ended"
			case f.EndUnknown:
				on = "not known"
			case f.Absorbed:
				on = "torch, without it"
			}
			t.Rows = append(t.Rows, []table.Cell{table.Text(f.RunID), all.cell(label, &r.Identity),
				table.Text(f.Device + rank(f.Rank)), table.Count(int64(f.Rank)), table.Bytes(f.RequestedBytes),
				table.Optional(f.Module, table.Text), table.Optional(f.At.Phase, table.Text), table.Optional(f.At.Step,
					table.Count), table.Optional(f.AllocatedBytes, table.Bytes),
				table.Optional(f.CachedBytes, table.Bytes), table.Count(int64(f.Requests)), table.Text(on),
				table.Text(sentence)})
			notes.add(all.badged(label, &r.Identity), sentence)
		}
		if r.FailedMore > 0 {
			notes.add(all.badged(label, &r.Identity), fmt.Sprintf("%d more requests failed; dpsight findings "+
				"lists them", r.FailedMore))
		}
	}
	t.Notes = append(append(t.Notes, notes.all()...), "dpsight findings says what to change; dpsight "+
		"breakdown --at oom shows what held the memory (--at oom=2: at the second failure of a device)")
	return t
}
