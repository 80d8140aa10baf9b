package analyze

import (
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/dense"
)

// KeptVersion is the version of kept summaries and of how they are computed. dpsight computes a kept summary again if
// its version is another one. Any change of a figure or a remark in [ListRun] or [Summarize] needs a new KeptVersion.
const KeptVersion = 1

// kept is a [Summary] in the form that a run's folder stores, with the data that a comparison of many runs needs. A
// kept summary has no timeline, costs or failed requests. A kept summary has the bytes of each category at the peak,
// and the peaks and median times of phases.
type kept struct {
	ID             identity.Identity     `json:"run"`
	Rest           identity.Kept         `json:"rest"`
	Started        time.Time             `json:"started"`
	Suite          string                `json:"suite,omitempty"`
	SuiteID        string                `json:"suite_id,omitempty"`
	Trial          bool                  `json:"trial,omitempty"`
	Key            string                `json:"key,omitempty"`
	GPU            string                `json:"gpu,omitempty"`
	Devices        []keptDevice          `json:"devices,omitempty"`
	Phases         []keptPhase           `json:"phases,omitempty"`
	FailedRequests *int                  `json:"failed_requests,omitempty"`
	Peak           *int64                `json:"peak_bytes,omitempty"`
	Reserved       *int64                `json:"peak_reserved_bytes,omitempty"`
	Device         *int64                `json:"peak_device_bytes,omitempty"`
	Allocations    *int64                `json:"allocations,omitempty"`
	KeptGradients  *int64                `json:"kept_gradient_bytes,omitempty"`
	Kept           *memory.KeptGradients `json:"kept,omitempty"`
	StepMS         *timing.Interval      `json:"step_ms,omitempty"`
	SamplesPerS    *float64              `json:"samples_per_s,omitempty"`
	TokensPerS     *float64              `json:"tokens_per_s,omitempty"`
	JoulesStep     *float64              `json:"joules_per_step,omitempty"`
	JoulesSample   *float64              `json:"joules_per_sample,omitempty"`
	NoEnergy       timing.NoEnergy       `json:"no_energy,omitempty"`
	Remarks        []keptRemark          `json:"remarks,omitempty"`
	Doubts         []string              `json:"doubts,omitempty"`
	Poisson        bool                  `json:"poisson,omitempty"`
	Script         string                `json:"script,omitempty"`
	Throttled      timing.Throttle       `json:"throttled"`
	DevicesUsed    int                   `json:"devices_used,omitempty"`
	ReservedAlone  *int64                `json:"reserved_alone_bytes,omitempty"`
	ReservedAtPeak *int64                `json:"reserved_at_peak_bytes,omitempty"`
}

// keptDevice is the part of a device's breakdown that a kept summary stores.
type keptDevice struct {
	Device     string         `json:"device"`
	Rank       int32          `json:"rank"`
	Allocated  int64          `json:"allocated_bytes"`
	Categories []keptCategory `json:"categories"`
}

// keptPhase is the part of a phase that a kept summary stores. A keptPhase's times are medians.
type keptPhase struct {
	Device string   `json:"device"`
	Rank   int32    `json:"rank,omitempty"`
	Phase  string   `json:"phase"`
	Peak   *int64   `json:"peak_bytes,omitempty"`
	GPUMS  *float64 `json:"gpu_ms,omitempty"`
	WallMS *float64 `json:"wall_ms,omitempty"`
}

type keptCategory struct {
	Category schemas.Category `json:"category"`
	Bytes    int64            `json:"bytes"`
	Held     int64            `json:"held_bytes,omitempty"`
}

// keptRemark is a remark in a kept summary. keptRemark stores the remark's error as text.
type keptRemark struct {
	Remark
	Err  *string `json:",omitempty"`
	Text string  `json:"error,omitempty"`
}

func keepRemarks(of []Remark) (out []keptRemark) {
	for _, r := range of {
		k := keptRemark{Remark: r}
		if r.Err != nil {
			k.Remark.Err, k.Text = nil, r.Err.Error()
		}
		out = append(out, k)
	}
	return out
}

func readRemarks(of []keptRemark) (out []Remark) {
	for i := range of {
		r := of[i].Remark
		if text := of[i].Text; text != "" {
			r.Err = errors.New(text)
		}
		out = append(out, r)
	}
	return out
}

// Kept is the encoded summary that a run's folder stores. Row is the run's row in the list of runs, and Compared is
// what comparisons use. Origin has the origin and the facts to which both refer and which many runs share.
type Kept struct{ Origin, Row, Compared []byte }

// Keep encodes a run's row and summary, so that a [KeptReader] can decode them.
func Keep(row *RunsRow, s *Summary) (out Kept, err error) {
	rest, origin := identity.Keep(&s.Identity, s.RunFacts)
	if out.Origin, err = json.Marshal(origin); err != nil {
		return out, err
	}
	if out.Row, err = json.Marshal(keptRow{*row, rest, keepRemarks(row.Remarks)}); err != nil {
		return out, err
	}
	out.Compared, err = json.Marshal(keep(s, rest))
	return out, err
}

func keep(s *Summary, rest identity.Kept) kept {
	k := kept{ID: s.Identity, Rest: rest, Started: s.Started, Suite: s.Suite, SuiteID: s.SuiteID,
		Trial: s.Trial, Key: s.Key, GPU: s.GPU, FailedRequests: s.FailedRequests,
		Peak: s.PeakBytes, Reserved: s.PeakReservedBytes, Device: s.PeakDeviceBytes, Allocations: s.Allocations,
		KeptGradients: s.KeptGradientBytes, Kept: s.Kept, StepMS: s.StepMS, SamplesPerS: s.SamplesPerS,
		TokensPerS: s.TokensPerS, JoulesStep: s.JoulesPerStep, JoulesSample: s.JoulesPerSample, NoEnergy: s.NoEnergy,
		Remarks: keepRemarks(s.Remarks), Doubts: s.Doubts, Poisson: s.Poisson, Script: s.Script, Throttled: s.Throttled,
		DevicesUsed: s.devicesUsed, ReservedAlone: s.ReservedAlone, ReservedAtPeak: s.reservedAtPeak}
	median := func(t *timing.Interval) *float64 {
		if t == nil {
			return nil
		}
		return &t.Median
	}
	for i := range s.Phases.Phases {
		p := &s.Phases.Phases[i]
		k.Phases = append(k.Phases, keptPhase{p.Device, p.Rank, p.Phase, p.PeakBytes, median(p.GPUMS), median(p.WallMS)})
	}
	for i := range s.Breakdown.Devices {
		d := &s.Breakdown.Devices[i]
		device := keptDevice{Device: d.Device, Rank: d.Rank, Allocated: d.AllocatedBytes}
		for _, c := range d.Categories {
			if c.Bytes != 0 || c.HeldBytes != 0 {
				device.Categories = append(device.Categories, keptCategory{c.Category, c.Bytes, c.HeldBytes})
			}
		}
		k.Devices = append(k.Devices, device)
	}
	return k
}

// Packed are the parts of a summary that a [KeptReader] decodes. Phases are separate, since they are the larger half of
// a summary and few comparisons use them.
type Packed struct{ Row, Compared, Phases []byte }

// Pack encodes the JSON of a run's row, and of what comparisons use, more compactly.
func Pack(row, compared []byte) (out Packed, err error) {
	var r keptRow
	var k kept
	if err = errors.Join(json.Unmarshal(row, &r), json.Unmarshal(compared, &k)); err != nil {
		return out, err
	}
	phases := k.Phases
	k.Phases = nil
	if out.Row, err = dense.Marshal(&r); err != nil {
		return out, err
	}
	if out.Compared, err = dense.Marshal(&k); err != nil {
		return out, err
	}
	out.Phases, err = dense.Marshal(&phases)
	return out, err
}

// A KeptReader decodes summaries that [Keep] encoded and [Pack] packed. A KeptReader decodes content that many runs
// share only once. A KeptReader is safe for concurrent use.
type KeptReader struct {
	mu      sync.Mutex
	origins map[string]map[string]*readOrigin // origins that were read, by source
	facts   map[string][]identity.Fact        // facts that were read, by their text
	devices map[*keptDevice][]memory.DeviceBreakdown
	readers dense.Readers
}

// readOrigin is an origin of runs of one source, with their facts.
type readOrigin struct {
	origin identity.Origin
	facts  []identity.Fact
}

// originOf decodes the origin of runs of one source, or returns it if it was decoded before.
func (r *KeptReader) originOf(b []byte, source string) (*readOrigin, error) {
	r.mu.Lock()
	o := r.origins[source][string(b)]
	r.mu.Unlock()
	if o != nil {
		return o, nil
	}
	var k identity.KeptOrigin
	if err := json.Unmarshal(b, &k); err != nil {
		return nil, err
	}
	text, err := json.Marshal(k.Facts)
	if err != nil {
		return nil, err
	}
	o = new(readOrigin)
	o.origin, o.facts = k.Read(source)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.origins == nil {
		r.origins, r.facts = map[string]map[string]*readOrigin{}, map[string][]identity.Fact{}
	}
	if r.origins[source] == nil {
		r.origins[source] = map[string]*readOrigin{}
	}
	if had, ok := r.facts[string(text)]; ok { // runs of many revisions have the same facts
		o.facts = had
	}
	r.facts[string(text)], r.origins[source][string(b)] = o.facts, o
	return o, nil
}

// devicesOf returns the breakdowns of a kept summary's devices in the form of a [Summary].
func (r *KeptReader) devicesOf(kept []keptDevice) []memory.DeviceBreakdown {
	if len(kept) == 0 {
		return nil
	}
	r.mu.Lock()
	had, ok := r.devices[&kept[0]]
	r.mu.Unlock()
	if ok {
		return had
	}
	devices := make([]memory.DeviceBreakdown, len(kept))
	for i, d := range kept {
		devices[i] = memory.DeviceBreakdown{Device: d.Device, Rank: d.Rank, AllocatedBytes: d.Allocated}
		for _, c := range d.Categories {
			devices[i].Categories = append(devices[i].Categories, memory.CategoryBytes{Category: c.Category,
				Bytes: c.Bytes, HeldBytes: c.Held})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.devices == nil {
		r.devices = map[*keptDevice][]memory.DeviceBreakdown{}
	}
	r.devices[&kept[0]] = devices
	return devices
}

// Summary decodes a run's summary with the data that comparisons and checks of many runs use, except its phases. A
// report about a single run needs more, and reads the run's tables instead.
func (r *KeptReader) Summary(origin, compared []byte) (Summary, error) {
	var k kept
	if err := r.readers.Unmarshal(compared, &k); err != nil {
		return Summary{}, err
	}
	o, err := r.originOf(origin, k.ID.Source)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{Started: k.Started, Suite: k.Suite, SuiteID: k.SuiteID, Trial: k.Trial, Key: k.Key, GPU: k.GPU,
		FailedRequests: k.FailedRequests, PeakBytes: k.Peak, PeakReservedBytes: k.Reserved, PeakDeviceBytes: k.Device,
		Allocations: k.Allocations, KeptGradientBytes: k.KeptGradients, Kept: k.Kept, StepMS: k.StepMS,
		SamplesPerS: k.SamplesPerS, TokensPerS: k.TokensPerS, JoulesPerStep: k.JoulesStep,
		JoulesPerSample: k.JoulesSample, NoEnergy: k.NoEnergy, Remarks: readRemarks(k.Remarks),
		Doubts: k.Doubts, Poisson: k.Poisson, Script: k.Script, Throttled: k.Throttled,
		devicesUsed: k.DevicesUsed, ReservedAlone: k.ReservedAlone, reservedAtPeak: k.ReservedAtPeak}
	s.Identity, s.RunFacts = k.ID, o.facts
	k.Rest.Into(&s.Identity, o.origin)
	s.Breakdown.Devices = r.devicesOf(k.Devices)
	return s, nil
}

// Phases decodes a run's phases, with the data that comparisons use.
func (r *KeptReader) Phases(packed []byte) ([]PhaseRow, error) {
	var phases []keptPhase
	if err := r.readers.Unmarshal(packed, &phases); err != nil {
		return nil, err
	}
	interval := func(median *float64) *timing.Interval {
		if median == nil {
			return nil
		}
		return &timing.Interval{Median: *median}
	}
	rows := make([]PhaseRow, len(phases))
	for i, p := range phases {
		rows[i] = PhaseRow{Device: p.Device, Rank: p.Rank, Phase: p.Phase, PeakBytes: p.Peak, GPUMS: interval(p.GPUMS),
			WallMS: interval(p.WallMS)}
	}
	return rows, nil
}

// keptRow is a [RunsRow] in the form that a run's folder stores.
type keptRow struct {
	RunsRow
	Rest    identity.Kept `json:"rest"`
	Remarks []keptRemark  `json:"remarks,omitempty"`
}

// Row decodes a run's row in the list of runs.
func (r *KeptReader) Row(origin, row []byte) (RunsRow, error) {
	var k keptRow
	if err := r.readers.Unmarshal(row, &k); err != nil {
		return RunsRow{}, err
	}
	o, err := r.originOf(origin, k.Source)
	if err != nil {
		return RunsRow{}, err
	}
	k.Rest.Into(&k.Identity, o.origin)
	k.RunsRow.Remarks = readRemarks(k.Remarks)
	return k.RunsRow, nil
}
