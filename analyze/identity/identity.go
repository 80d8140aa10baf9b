package identity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/schemas"
)

// Identity says which run a figure belongs to, and whether the run was measured, predicted or imported. JSON documents
// about runs contain an Identity for each run.
type Identity struct {
	RunID   string         `json:"run_id"`
	Name    string         `json:"name"`
	Status  string         `json:"status"`
	Reason  string         `json:"reason,omitempty"` // why the status is not ok
	Source  string         `json:"source"`           // measured, predicted or imported
	Profile *string        `json:"profile"`          // device profile of a predicted run
	Params  map[string]any `json:"params"`
	// Confidence is the level of confidence in the figures of a predicted run; see [confidence.Assess]. Confidence is
	// empty for other runs.
	Confidence        string   `json:"confidence,omitempty"`
	ConfidenceReasons []string `json:"confidence_reasons,omitempty"`
	// KnownError states, as a sentence, how far off recorded cases with these reasons were; null if there are no such
	// recordings.
	KnownError *string `json:"known_error,omitempty"`

	// PeakLowBytes and PeakHighBytes bound the highest peak of the run's devices if the sizes of some blocks from
	// before recording are not known; both are null otherwise.
	PeakLowBytes  *int64 `json:"peak_low_bytes,omitempty"`
	PeakHighBytes *int64 `json:"peak_high_bytes,omitempty"`
	// Undigested is true if files of the run have no digests, so that damage to these files cannot be noticed.
	Undigested bool `json:"undigested,omitempty"`

	// Rules is the version of the rules that made the run's categories; nil for a run without categories, 0 = made
	// before versions were kept.
	Rules *int `json:"-"`

	Command []string `json:"-"` // see [CommandOf]
	Origin  Origin   `json:"-"`
	label   string   // label of the run: see [Identity.Shown]
}

func Of(in *schemas.Tables) Identity {
	m := in.Manifest
	params := maps.Clone(m.Params)
	if params == nil {
		params = map[string]any{}
	}
	if m.Bare {
		params["bare"] = true
	}
	id := Identity{RunID: m.RunID, Name: m.Name, Status: m.Status, Reason: m.Reason, Source: m.Source,
		Profile: m.Profile, Params: params, Undigested: schemas.Undigested(m, in.Report),
		Command: CommandOf(m), Origin: OriginOf(in)}
	// If the agent fell silent, the run's record is incomplete, as if the run had been stopped.
	if hook := in.Report.Silenced(); hook != nil && id.Status == schemas.StatusOK {
		id.Status, id.Reason = schemas.StatusPartial, hook.Words()
	}
	if r := in.Report; r != nil && len(r.Devices) > 0 && !m.Bare && !m.FiguresOnly() {
		id.Rules = &r.Rules
	}
	id.PeakLowBytes, id.PeakHighBytes = boundsOf(in)
	if c := confidence.Of(in); c != nil {
		id.Confidence, id.ConfidenceReasons, id.KnownError = c.Level, c.Reasons, c.KnownError
	}
	return id
}

// boundsOf returns the bounds of the highest peak over all devices, if some device's peak has bounds. Otherwise
// boundsOf returns nil.
func boundsOf(in *schemas.Tables) (low, high *int64) {
	if in.Report == nil || !slices.ContainsFunc(in.Report.Devices, func(v schemas.DeviceVerdict) bool {
		return v.PeakHighBytes != nil
	}) {
		return nil, nil
	}
	low, high = new(int64), new(int64)
	for i := range in.Report.Devices {
		v := &in.Report.Devices[i]
		if peak := Higher(v.Events, &v.PeakAllocatedBytes, v.TorchPeakAllocatedBytes); peak != nil {
			*low, *high = max(*low, *peak), max(*high, *peak)
		}
		if v.PeakHighBytes != nil {
			*high = max(*high, *v.PeakHighBytes)
		}
	}
	return low, high
}

// Bounded reports whether some of the run's bytes are known within bounds only.
func (id *Identity) Bounded() bool { return id.PeakHighBytes != nil }

// Bare reports whether the run has counters and timers only.
func (id *Identity) Bare() bool { b, _ := id.Params["bare"].(bool); return b }

// Badge returns the badge of a run that was not measured in full: "predicted (phantom h200, close)", "imported", "bare"
// or "bounded"; otherwise "". Every output shows the badge beside the run.
func (id *Identity) Badge() string {
	badge := id.madeBadge()
	switch {
	case !id.Bounded():
		return badge
	case badge == "":
		return schemas.Bounded
	}
	return badge + ", " + schemas.Bounded
}

// madeBadge returns the part of the badge about how the run was made: predicted, imported or bare.
func (id *Identity) madeBadge() string {
	switch {
	case id.Source == schemas.Predicted:
		text := "phantom"
		if id.Profile != nil {
			text += " " + *id.Profile
		}
		if id.Confidence != "" {
			text += ", " + id.Confidence
		}
		return id.bare("predicted (" + text + ")")
	case id.Source == schemas.Imported:
		return "imported"
	case id.Bare():
		return "bare"
	}
	return ""
}

// kind returns the badge without the confidence and the bounds, since these do not distinguish experiments.
func (id *Identity) kind() string {
	plain := *id
	plain.Confidence = ""
	return plain.madeBadge()
}

func (id *Identity) bare(badge string) string {
	if id.Bare() {
		return badge + ", bare"
	}
	return badge
}

// Shown returns the run's label in a document of several runs: its name and, if other experiments in the document have
// the same name, what distinguishes it.
func (id *Identity) Shown() string { return cmp.Or(id.label, id.Title()) }

// Title returns the run's name, or its id if it has no name.
func (id *Identity) Title() string {
	if id.Name == "" {
		return id.RunID
	}
	return id.Name
}

// Place is one device of one rank.
type Place struct{ Rank, Device int32 }

func (p Place) String() string { return fmt.Sprintf("cuda:%d", p.Device) }

// Places lists the devices that the run has verdicts for, in order; without a report, the devices with allocations.
func Places(in *schemas.Tables) []Place {
	seen := map[Place]bool{}
	if in.Report != nil {
		for _, d := range in.Report.Devices {
			seen[Place{d.Rank, d.Device}] = true
		}
	}
	last := Place{-1, -1}
	for i := range in.Allocations {
		if p := (Place{in.Allocations[i].Rank, in.Allocations[i].Device}); p != last { // all rows of a device lie together
			seen[p], last = true, p
		}
	}
	for i := range in.Lives {
		seen[Place{in.Lives[i].Rank, in.Lives[i].Device}] = true
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Device, b.Device))
	})
}

// Verdict returns ingest's verdict on a device, or nil if the report has none.
func Verdict(in *schemas.Tables, p Place) *schemas.DeviceVerdict {
	if in.Report == nil {
		return nil
	}
	for i := range in.Report.Devices {
		if d := &in.Report.Devices[i]; d.Rank == p.Rank && d.Device == p.Device {
			return d
		}
	}
	return nil
}

// Higher returns the higher of two highest values: the replayed one and torch's counter. If there are no events, Higher
// returns the counter.
func Higher(events int64, replayed, torch *int64) *int64 {
	if events == 0 || torch != nil && *torch > *replayed {
		return torch
	}
	return replayed
}
