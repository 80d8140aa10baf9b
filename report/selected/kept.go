package selected

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// keeper returns the function that reduces a run to its kept document. The function makes no document for a prediction
// whose report has no confidence, since the missing confidence must be computed with the present records of known
// errors.
func keeper() store.Keeper {
	return store.Keeper{Version: analyze.KeptVersion, Want: analyze.SummaryTables | analyze.ListTables,
		Make: func(t *schemas.Tables, s *schemas.Summary) bool {
			if p := t.Report.Prediction; p != nil && p.Confidence == nil {
				return false
			}
			in := withConfidence(t)
			row, sum := analyze.ListRun(in), analyze.Summarize(in)
			kept, err := analyze.Keep(&row, &sum)
			s.Origin, s.Row, s.Compared = kept.Origin, kept.Row, kept.Compared
			return err == nil
		},
		Pack: func(s *schemas.Summary) (map[store.KeptKind][]byte, error) {
			p, err := analyze.Pack(s.Row, s.Compared)
			return map[store.KeptKind][]byte{store.KeptRow: p.Row, store.KeptCompared: p.Compared,
				store.KeptPhases: p.Phases}, err
		}}
}

// keeper shows progress if the store lacks the summaries of many runs.
func (s *Source) keeper() store.Keeper {
	k := keeper()
	if s.Doing != nil {
		k.Doing = func(done, of int) { s.Doing(fmt.Sprintf("reading %d of %d runs", done, of), done, of) }
	}
	return k
}

// summarizedEvents is the most allocator events with which a run gets its summary as soon as it is ingested. The
// summary is made from the tables: for a million events, reading them would take as long as importing their snapshot.
// The summary of a larger run is made when a store of many runs first needs it.
const summarizedEvents = 500_000

// WriteSummaries writes the summaries of runs that have just been ingested, by their folders.
func WriteSummaries(dirs ...string) {
	for _, dir := range dirs {
		report, err := schemas.ReadIngestReport(dir)
		if err != nil {
			continue // a run that cannot be read gets no summary
		}
		var events int64
		for _, d := range report.Devices {
			events += d.Events
		}
		if events <= summarizedEvents {
			store.WriteSummary(dir, keeper())
		}
	}
}

// kept reduces the runs for comparisons and checks, without their phases (see [Runs.addPhases]), and returns the runs
// that could be read.
func (r *Runs) kept() (read *Runs, sums []analyze.Summary, err error) {
	var reader analyze.KeptReader
	return fromKept(r, store.KeptCompared, reader.Summary, analyze.SummaryTables, analyze.Summarize)
}

// addPhases adds the phases to runs that [Runs.kept] reduced.
func (r *Runs) addPhases(sums []analyze.Summary) {
	lacking := map[string]int{}
	for i := range sums {
		if sums[i].Phases.Phases == nil {
			lacking[sums[i].RunID] = i
		}
	}
	of := r.Only(slices.DeleteFunc(slices.Clone(r.Runs), func(run store.Run) bool {
		_, lacks := lacking[run.ID]
		return !lacks
	}))
	var reader analyze.KeptReader
	decoded := of.Kept(r.from.keeper(), store.KeptPhases, func(i int, _, data []byte) bool {
		rows, err := reader.Phases(data)
		sums[lacking[of.Runs[i].ID]].Phases.Phases = rows
		return err == nil
	})
	for i, run := range of.Runs {
		if decoded[i] {
			continue
		}
		t, err := Read(run, analyze.SummaryTables)
		if err != nil {
			r.from.Warn(store.Damaged{Dir: run.Dir, Err: err}.Error())
			continue
		}
		sums[lacking[run.ID]] = analyze.Summarize(t)
	}
}

// listed returns the rows of the list of runs.
func (r *Runs) listed() (read *Runs, rows []analyze.RunsRow, err error) {
	var reader analyze.KeptReader
	return fromKept(r, store.KeptRow, reader.Row, analyze.ListTables, analyze.ListRun)
}

// fromKept returns the kept value of each run or, if there is none, what make computes from its tables.
func fromKept[T any](r *Runs, kind store.KeptKind, decode func(origin, data []byte) (T, error), want schemas.Want,
	from func(schemas.Tables) T) (read *Runs, out []T, err error) {
	had := make([]T, len(r.Runs))
	out = had[:0] // out reuses had's memory: it only overwrites values that were already read
	decoded := r.Selection.Kept(r.from.keeper(), kind, func(i int, origin, data []byte) bool {
		var err error
		had[i], err = decode(origin, data)
		return err == nil
	})
	sel, damaged, err := r.EachBut(func(i int) bool {
		if decoded[i] {
			out = append(out, had[i])
		}
		return decoded[i]
	}, want, true, func(t *schemas.Tables) error {
		out = append(out, from(withConfidence(t)))
		return nil
	})
	for _, d := range damaged {
		r.from.Warn(d.Error())
	}
	return &Runs{sel, r.from, r.leftOut}, out, err
}
