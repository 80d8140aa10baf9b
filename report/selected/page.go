package selected

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze/blocks"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

const (
	// mostExplained is the most runs that a page compares with the baseline in words. Each such explanation reads the
	// run and the baseline.
	mostExplained = 12
	// pagePoints is the number of points into which a page divides a device's events if they do not fit one by one.
	pagePoints = 600
)

// page collects the contents of the page on a report's runs: the documents that commands print, and the blocks.
func (r *Runs) page(title string, study compare.Study) (*page.Builder, error) {
	r = r.quiet(r.Selection) // the report itself already prints the warnings about its runs
	b := page.NewBuilder(title)
	r.firstDocuments(b)
	r.otherDocuments(b, study)
	_, err := r.Each(blocks.Tables, true, func(in schemas.Tables) error { return addBlocks(b, &in) })
	return b, err
}

// firstDocuments adds the documents that every view of the page needs: the list of runs, and their breakdown, which it
// also returns.
func (r *Runs) firstDocuments(b *page.Builder) memory.BreakdownDocument {
	list, err := r.List()
	b.Document("runs", []table.Table{report.RunsTable(list)}, err)
	for i := range r.Runs {
		b.Revision(r.Runs[i].ID, r.Runs[i].Manifest.Git)
	}
	breakdown, err := r.Breakdown(memory.At{})
	b.Document("breakdown", report.BreakdownTables(breakdown), err)
	return breakdown
}

// otherDocuments adds the documents that other commands print about the runs.
func (r *Runs) otherDocuments(b *page.Builder, study compare.Study) {
	if study.Overhead != nil {
		b.Document("overhead", report.OverheadTables(study), nil)
	}
	found, err := r.Findings()
	b.Document("findings", report.FindingsView{All: true, Schema: 2}.Tables(found), err)
	ladder, err := r.Ladder()
	b.Document("ladder", report.LadderTables(ladder), err)
	phases, err := r.Phases()
	b.Document("phases", report.PhasesTables(phases), err)
	cost, err := r.Cost()
	b.Document("cost", []table.Table{report.CostTable(cost)}, err)
	times, err := r.ModuleTimes(timing.ModuleTimeBy{Dimension: grouping.DimensionModule, Fold: true})
	b.Document("time", report.ModuleTimeTables(times), err)
	r.explained(b, study)
}

// quiet returns some runs as a selection that prints no warnings.
func (r *Runs) quiet(some *store.Selection) *Runs {
	from := &Source{Store: r.from.Store, Named: r.from.Named, Recording: r.from.Recording}
	from.Say, from.Note, from.Warn = func(string) {}, func(string) {}, func(string) {}
	return &Runs{some, from, nil}
}

// explained adds an explanation of each run's difference from its baseline.
func (r *Runs) explained(b *page.Builder, study compare.Study) {
	if study.Baseline == nil {
		return
	}
	var named []string
	for i := range study.Cells {
		if id := study.Cells[i].RunID; id != study.Baseline.RunID && len(named) < mostExplained {
			named = append(named, id)
		}
	}
	inputs := map[string]explain.Input{}
	wanted := r.Only(slices.DeleteFunc(slices.Clone(r.Runs), func(run store.Run) bool {
		return run.ID != study.Baseline.RunID && !slices.Contains(named, run.ID)
	}))
	_, err := (&Runs{wanted, r.from, nil}).Each(explain.Tables, true, func(in schemas.Tables) error {
		inputs[in.Manifest.RunID] = explain.NewInput(in)
		return nil
	})
	for _, id := range named {
		if err != nil {
			b.Document("explain "+id, nil, err)
			continue
		}
		from, here := inputs[study.Baseline.RunID]
		to, there := inputs[id]
		if !here || !there {
			continue
		}
		doc, err := explain.Explain(from, to)
		if err != nil {
			b.Document("explain "+id, nil, err)
			continue
		}
		b.Document("explain "+id, report.ExplainTables(doc, 0), nil)
	}
}

// addBlocks adds the blocks of a run. For a run without blocks, the page shows only documents.
func addBlocks(b *page.Builder, in *schemas.Tables) error {
	devices, err := blocks.Of(in)
	if err != nil {
		return withoutEvents(err, true)
	}
	points, err := timeline.CategoryTimeline(*in, timeline.EventRange{}, pagePoints)
	if err != nil {
		return err
	}
	for i := range devices {
		d := &devices[i]
		k := slices.IndexFunc(points.Devices, func(t timeline.DeviceTimeline) bool {
			return t.Device == d.Device && t.Rank == d.Rank
		})
		if k < 0 {
			return fmt.Errorf("run %s has blocks and no timeline on %s", in.Manifest.RunID, d.Device)
		}
		from, to := peakWindow(d, points.Devices[k].RunPeakAt)
		if err := b.Device(in.Manifest.RunID, d, &points.Devices[k], from, to); err != nil {
			return err
		}
	}
	return nil
}

// peakWindow returns the first and last event of the peak's step or, if the peak lies in no step, of a window around
// the peak.
func peakWindow(d *blocks.Device, peak memory.Moment) (from, to int64) {
	for i := range d.Steps {
		if s := &d.Steps[i]; s.BeginSeq < peak.Event && peak.Event <= s.EndSeq {
			return s.BeginSeq + 1, s.EndSeq
		}
	}
	const around = 10_000
	return max(0, peak.Event-around), min(d.Events, peak.Event+around)
}
