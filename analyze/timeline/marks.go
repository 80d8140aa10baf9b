package timeline

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// MarksTables lists the tables that the document of a script's marks needs.
const MarksTables = schemas.WantLives | schemas.WantTimes | schemas.WantReserved | schemas.WantHost

// MarksSchema is the version of [MarksDocument].
const MarksSchema = "dpsight.marks/1"

// MarksDocument is what "dpsight marks --format json" prints.
type MarksDocument struct {
	Schema string     `json:"schema"`
	Runs   []MarksRun `json:"runs"`
}

// MarksRun has the marks that a script set with dpsight.mark in one run.
type MarksRun struct {
	identity.Identity
	Marks []Mark `json:"marks"`
}

// Mark is a mark of one process, placed among the events of one of its devices, with the bytes that were allocated on
// the device at that moment.
type Mark struct {
	Label     string        `json:"label"`
	Device    string        `json:"device"`
	Rank      int32         `json:"rank"`
	At        memory.Moment `json:"at"` // the last event before the mark; event 0: the mark came before the first event
	Allocated int64         `json:"allocated_bytes"`
	// Since is the allocated bytes minus those at the previous mark on the same device; null at the device's first
	// mark.
	Since    *int64 `json:"since_bytes"`
	Reserved *int64 `json:"reserved_bytes"` // bytes reserved; null if not known
}

// NewMarksDocument makes the document of these runs.
func NewMarksDocument(runs ...MarksRun) MarksDocument {
	if runs == nil {
		runs = []MarksRun{}
	}
	doc := MarksDocument{MarksSchema, slices.Clone(runs)}
	identity.Distinguish(doc.Runs, func(r *MarksRun) *identity.Identity { return &r.Identity })
	return doc
}

// Marks places the script's marks among the events of each device. For a run without allocator events it returns the
// run's identity and a [*memory.NoEventsError].
func Marks(in schemas.Tables) (MarksRun, error) {
	run := MarksRun{Identity: identity.Of(&in), Marks: []Mark{}}
	if err := memory.NoEvents(&in); err != nil {
		return run, err
	}
	for _, p := range identity.Places(&in) {
		changes := memory.NewLedger(&in, p).Changes()
		next, allocated := 0, int64(0)
		var before *int64
		for i := range in.UserMarks { // marks are in the order of their events
			m := &in.UserMarks[i]
			if m.Rank != p.Rank || m.Device != p.Device {
				continue
			}
			for next < len(changes) && changes[next].Seq() <= m.Seq {
				allocated += changes[next].Bytes
				next++
			}
			mark := Mark{Label: m.Label, Device: p.String(), Rank: p.Rank, At: memory.MomentOf(&in, p, m.Seq),
				Allocated: allocated, Reserved: memory.ReservedAt(&in, p, m.Seq)}
			if before != nil {
				mark.Since = new(allocated - *before)
			}
			before = new(allocated)
			run.Marks = append(run.Marks, mark)
		}
	}
	return run, nil
}
