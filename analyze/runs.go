package analyze

import (
	"time"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// ListTables lists the tables that a list of runs needs. The table of allocations is not among them.
const ListTables = schemas.WantTimes | schemas.WantReserved

// RunsSchema is the version of [RunsDocument].
const RunsSchema = "dpsight.runs/1"

// RunsDocument is what "dpsight runs --format json" prints.
type RunsDocument struct {
	Schema string    `json:"schema"`
	Runs   []RunsRow `json:"runs"`
}

// UnlikeArguments returns the runs that share name and parameters, but are different experiments, since their
// commands differ.
func (d *RunsDocument) UnlikeArguments() []identity.Unlike {
	ids := make([]identity.Identity, len(d.Runs))
	for i := range d.Runs {
		ids[i] = d.Runs[i].Identity
	}
	return identity.UnlikeArguments(ids)
}

// Differing returns, for each run, the parameters, or else the arguments, that distinguish the run from other runs of
// the same name. The status and the source of a run have columns of their own.
func (d *RunsDocument) Differing() []string {
	ids, labels, out := make([]identity.Identity, len(d.Runs)), make([]string, len(d.Runs)), make([]string, len(d.Runs))
	for i := range d.Runs {
		ids[i] = d.Runs[i].Identity
		ids[i].Status = ""
		labels[i] = ids[i].Title()
	}
	identity.TellApart(ids, labels, func(i int, text string) {
		if out[i] != "" {
			text = ", " + text
		}
		out[i] += text
	})
	return out
}

// RunsRow is one run of a store.
type RunsRow struct {
	identity.Identity
	Tags              []string `json:"tags,omitempty"` // tags that users gave the run
	Suite             *string  `json:"suite"`
	Trial             bool     `json:"trial,omitempty"` // the run is a trial of a value in a search of predict --vary
	PeakBytes         *int64   `json:"peak_bytes"`
	PeakReservedBytes *int64   `json:"peak_reserved_bytes"` // highest reserved, which may come after the peak
	// ReservedAtPeakBytes is what was reserved when PeakBytes were allocated. ReservedAtPeakBytes is null if unknown.
	ReservedAtPeakBytes *int64 `json:"reserved_at_peak_bytes"`
	// ReservedTogether is true if PeakReservedBytes sums several processes on one device.
	ReservedTogether bool      `json:"reserved_together,omitempty"`
	StepMS           *float64  `json:"step_ms"` // median step
	SamplesPerS      *float64  `json:"samples_per_s"`
	GPU              *string   `json:"gpu"`
	Started          time.Time `json:"started"`
	// SupersededBy is the id of a newer run of the same experiment that replaces this run, which did not end well.
	// SupersededBy is null if there is no newer run, or before [RunsDocument.Supersede].
	SupersededBy *string `json:"superseded_by"`
	// FailedRequests counts the failed requests for memory, except those that torch itself recovered from.
	// FailedRequests is null if failed requests were not recorded.
	FailedRequests *int     `json:"failed_requests"`
	Warnings       []string `json:"warnings"`
	Remarks        []Remark `json:"-"`
}

// Runs makes the list of runs from summaries.
func Runs(runs []Summary) RunsDocument {
	doc := RunsDocument{RunsSchema, []RunsRow{}}
	for i := range runs {
		s := &runs[i]
		row := RunsRow{Identity: s.Identity, Suite: identity.OrNull(s.Suite), Trial: s.Trial, PeakBytes: s.PeakBytes,
			PeakReservedBytes: s.PeakReservedBytes, ReservedAtPeakBytes: s.reservedAtPeak,
			ReservedTogether: s.ReservedAlone != nil,
			SamplesPerS:      s.SamplesPerS, GPU: identity.OrNull(s.GPU), Started: s.Started,
			FailedRequests: s.FailedRequests, Warnings: []string{}, Remarks: s.Remarks}
		if s.StepMS != nil {
			row.StepMS = &s.StepMS.Median
		}
		doc.Runs = append(doc.Runs, row)
	}
	return doc
}

// ListRun returns the row of a run in a list of runs. ListRun does not need the table of allocations, since it uses
// only the manifest, the report, steps, phases, and the levels of reserved.
func ListRun(in schemas.Tables) RunsRow {
	s := Summary{Identity: identity.Of(&in), Started: in.Manifest.Start}
	if in.Manifest.Suite != nil {
		s.Suite, s.Trial = in.Manifest.Suite.Name, in.Manifest.Suite.Search
	}
	if len(in.Manifest.GPUs) > 0 {
		s.GPU = in.Manifest.GPUs[0].Name
	}
	s.peaks(&in)
	s.FailedRequests = memory.FailedCount(&in)
	t := timing.Of(&in)
	s.StepMS = t.Step()
	s.SamplesPerS = t.Rate(func(s *timing.StepTime) int64 { return s.Samples })
	s.Remarks = append(s.Remarks, timeRemarks(t.Remarks)...)
	s.Remarks = append(s.Remarks, hookRemarks(in.Report)...)
	s.Remarks = append(s.Remarks, goneRemarks(in.Report)...)
	if in.Report == nil {
		s.Remarks = append(s.Remarks, Remark{Kind: RemarkNotIngested})
	}
	return Runs([]Summary{s}).Runs[0]
}
