package report

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/findings"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/units"
)

func hostGrowthWords(w *wording, x findings.HostGrowthFacts) {
	const from = "host_marks.parquet, over the later half of the steps"
	kind := hostKindWords(x.Kind)
	w.Title = fmt.Sprintf("Memory on the host (%s) grows by %s a step", kind, table.Size(x.Trend.BytesPerStep))
	w.bytes("growth a step", x.Trend.BytesPerStep, from)
	w.bytes("growth", *w.Bytes, from)
	w.bytes(kind+" at the end", x.LastBytes, "host_marks.parquet: the last reading")
	w.say("The %s memory of the process on the host grew by %s a step: %s over the last %s. It was still growing.", kind,
		units.MiB(x.Trend.BytesPerStep), units.MiB(*w.Bytes), units.Plural(int(x.Trend.Steps), "step", "steps"))
	where := "the script"
	if p := x.Largest; p != nil {
		w.bytes("growth in "+p.Phase, p.Bytes, "host_marks.parquet and phases.parquet: over the whole run")
		w.say(" Most of the growth over the whole run came in %s.", p.Phase)
		where = "that phase"
	}
	w.Change = "find what " + where + " keeps from step to step: lists of results, a cache without " +
		"a limit, buffers that " +
		"are pinned again; dpsight host lists all phases"
}
