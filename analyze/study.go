package analyze

import (
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// StudySchema is the version of [StudyDocument].
const StudySchema = "dpsight.report/1"

// Study is a set of runs beside a baseline: all that a report shows.
type Study struct {
	Runs     []Summary
	Labels   []string // what each run is shown as: unique among runs of one mark
	Baseline *Summary // nil: nothing to compare with
	// BaselineLabel is the baseline's label, whether it is among Runs or not.
	BaselineLabel string
	Overhead      *OverheadDocument // as many runs as Runs; nil without a baseline
}

// NewStudy compares runs with a baseline, which may be nil.
func NewStudy(runs []Summary, baseline *Summary) Study {
	ids, started := make([]Identity, len(runs)), make([]time.Time, len(runs))
	for i := range runs {
		ids[i], started[i] = runs[i].Identity, runs[i].Started
	}
	s := Study{Runs: runs, Labels: Labels(ids, started), Baseline: baseline}
	if baseline == nil {
		return s
	}
	s.BaselineLabel = baseline.title()
	for i := range runs {
		if runs[i].RunID == baseline.RunID {
			s.BaselineLabel = s.Labels[i]
		}
	}
	if mark := baseline.StatusMark(); mark != "" {
		s.BaselineLabel += " [" + mark + "]"
	}
	doc := Overhead(*baseline, runs)
	s.Overhead = &doc
	return s
}

// StatusMark is [Identity.Mark] and the status where it is not ok: what must stand beside every figure of the run.
func (id *Identity) StatusMark() string {
	mark := id.Mark()
	if id.Status == schemas.StatusOK {
		return mark
	}
	if mark != "" {
		mark += ", "
	}
	return mark + id.Status
}

// StudyDocument is results.json of a report: every other document of the same runs.
type StudyDocument struct {
	Schema    string             `json:"schema"`
	Runs      []RunsRow          `json:"runs"`
	Breakdown []BreakdownRun     `json:"breakdown"`
	Phases    []PhasesRun        `json:"phases"`
	Overhead  *OverheadDocument  `json:"overhead"`
	Shared    []SharedActivation `json:"shared_hook_activations"`
}

// Document gathers the study's documents.
func (s *Study) Document() StudyDocument {
	doc := StudyDocument{Schema: StudySchema, Runs: Runs(s.Runs).Runs, Breakdown: []BreakdownRun{}, Phases: []PhasesRun{},
		Overhead: s.Overhead, Shared: []SharedActivation{}}
	for i := range s.Runs {
		doc.Breakdown = append(doc.Breakdown, s.Runs[i].Breakdown)
		doc.Phases = append(doc.Phases, s.Runs[i].Phases)
		for k := range s.Runs[i].Breakdown.Devices {
			if sh := s.Runs[i].Breakdown.Devices[k].SharedHookActivations(); sh != nil {
				sh.RunID = s.Runs[i].RunID
				doc.Shared = append(doc.Shared, *sh)
			}
		}
	}
	return doc
}

// SharedActivation says what the hooks of a DP method really cost on one device: most of what they hold is held by
// autograd too, and would be there without them.
type SharedActivation struct {
	RunID  string `json:"run_id"`
	Device string `json:"device"`
	Rank   int32  `json:"rank"`
	// HeldBytes is what hooks hold, SharedBytes the part that others hold too, AutogradBytes the part that autograd does.
	HeldBytes     int64 `json:"held_bytes"`
	SharedBytes   int64 `json:"shared_bytes"`
	AutogradBytes int64 `json:"autograd_bytes"`
	ExtraBytes    int64 `json:"extra_bytes"` // HeldBytes - SharedBytes
}

// SharedHookActivations is nil where hooks hold nothing that others hold too.
func (d *DeviceBreakdown) SharedHookActivations() *SharedActivation {
	c := d.Category(schemas.HookActivations)
	if c.SharedBytes == 0 {
		return nil
	}
	return &SharedActivation{Device: d.Device, Rank: d.Rank, HeldBytes: c.HeldBytes, SharedBytes: c.SharedBytes,
		AutogradBytes: c.SharedWith[schemas.Activations], ExtraBytes: c.HeldBytes - c.SharedBytes}
}
