package selected

import (
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// Remade compares runs before and after their tables are made again, and reports which bytes moved.
type Remade struct{ before map[string]peaks }

// peaks has the composition of a run's peaks, and the version of the rules that made it.
type peaks struct {
	run     store.Run
	rules   int
	devices []memory.DeviceBreakdown
}

// Before keeps a run's peaks before its tables are made again. If its tables cannot be read, nothing is reported as
// moved.
func (r *Remade) Before(dir string) {
	if p, ok := peaksOf(dir); ok {
		if r.before == nil {
			r.before = map[string]peaks{}
		}
		r.before[dir] = p
	}
}

// Tell adds to the document which bytes moved in the runs for which Before was called.
func (r *Remade) Tell(doc *schemas.Ingested) {
	for _, dir := range doc.Dirs {
		was, ok := r.before[dir]
		if !ok {
			continue
		}
		now, ok := peaksOf(dir)
		if !ok {
			continue
		}
		moved := memory.Moved(was.devices, now.devices)
		if len(moved) > 0 || was.rules != now.rules {
			doc.Remade = append(doc.Remade, schemas.Remade{RunID: now.run.ID, Name: now.run.Manifest.Name,
				RulesBefore: was.rules, Rules: now.rules, Moved: moved})
		}
	}
}

func peaksOf(dir string) (p peaks, ok bool) {
	run, err := store.OpenRun(dir)
	if err != nil {
		return p, false
	}
	in, err := Read(run, memory.BreakdownTables)
	if err != nil {
		return p, false
	}
	b, err := memory.Breakdown(in, memory.At{})
	if err != nil {
		return p, false
	}
	return peaks{run, in.Report.Rules, b.Devices}, true
}
