package analyze

import (
	"cmp"
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/schemas"
)

// CostTables lists the tables with the cost of recording: only manifest and report are needed.
const CostTables schemas.Want = 0

// CostSchema is the version of [CostDocument].
const CostSchema = "dpsight.cost/1"

// CostDocument is what "dpsight cost --format json" prints.
type CostDocument struct {
	Schema string    `json:"schema"`
	Runs   []CostRun `json:"runs"`
}

// NewCostDocument makes the document of these runs.
func NewCostDocument(runs ...CostRun) CostDocument {
	if runs == nil {
		runs = []CostRun{}
	}
	doc := CostDocument{CostSchema, slices.Clone(runs)}
	for i := range doc.Runs {
		doc.Runs[i].besideTwins(runs)
	}
	identity.Distinguish(doc.Runs, func(r *CostRun) *identity.Identity { return &r.Identity })
	return doc
}

// besideTwins compares the peaks of a recorded run with the peaks of bare runs of the same experiment, since recording
// should not change a peak. besideTwins also sets how much longer the recorded run's bare steps take than the bare
// runs' steps.
func (c *CostRun) besideTwins(runs []CostRun) {
	if c.Bare() || c.Status != schemas.StatusOK {
		return
	}
	var steps []float64
	said := false
	for i := range runs {
		twin := &runs[i]
		if !twin.Bare() || twin.Status != schemas.StatusOK || twin.experiment != c.experiment {
			continue
		}
		if twin.BareStepMS != nil {
			steps = append(steps, *twin.BareStepMS)
		}
		if said { // one remark stands for all bare repeats
			continue
		}
		differences := c.differences(twin)
		c.Remarks, said = append(slices.Clone(c.Remarks), differences...), len(differences) > 0
	}
	// The fastest of several repeats may be an exception, so their median represents the experiment.
	slices.Sort(steps)
	if c.BareStepMS != nil && len(steps) > 0 && timing.Middle(steps) > 0 {
		c.BesideBareRun = new(*c.BareStepMS/timing.Middle(steps) - 1)
	}
}

// differences returns remarks on how far the peaks are from a bare run's peaks. differences returns none if the peaks
// are equal.
func (c *CostRun) differences(twin *CostRun) (out []Remark) {
	differ := func(kind RemarkKind, ours, theirs *int64) bool {
		if ours == nil || theirs == nil || *ours == *theirs {
			return false
		}
		out = append(out, Remark{Kind: kind, Bytes: *ours, OtherBytes: *theirs, Name: twin.Title()})
		return true
	}
	reserved := RemarkCachedDiff
	if differ(RemarkAllocatedDiff, c.TorchPeakBytes, twin.TorchPeakBytes) {
		reserved = RemarkReservedDiff
	}
	differ(reserved, c.PeakReservedBytes, twin.PeakReservedBytes)
	return out
}

// CostRun says what recording cost one run, and shows whether recording lost events or changed the peak.
type CostRun struct {
	identity.Identity
	// PeakBytes is the replayed peak and TorchPeakBytes the peak by torch's own counter, of the device with the
	// highest peak. A bare run has only TorchPeakBytes.
	PeakBytes      *int64 `json:"peak_bytes"`
	TorchPeakBytes *int64 `json:"torch_peak_bytes"`
	// PeakReservedBytes is the most that the caching allocator of any process had reserved on any device.
	PeakReservedBytes *int64 `json:"peak_reserved_bytes"`
	Verdict           string `json:"verdict"`
	Events            int64  `json:"events"`
	MissingEvents     int64  `json:"missing_events"`
	ResidueBytes      int64  `json:"residue_bytes"`
	// The median step without and with module hooks and tags; null if the run has no such step, and for predicted
	// runs.
	BareStepMS         *float64 `json:"bare_step_ms"`
	InstrumentedStepMS *float64 `json:"instrumented_step_ms"`
	// InstrumentMS is what hooks and tags add to a step, on the rank where they add most. If batches vary and their
	// sizes are known, InstrumentMS is computed per sample. InstrumentShare is InstrumentMS as a share of a bare
	// step. Published times come from bare steps, so they do not contain InstrumentMS.
	InstrumentMS    *float64 `json:"instrument_ms"`
	InstrumentShare *float64 `json:"instrument_share"`
	// BesideBareRun is how much longer a bare step takes here than in the bare run of the same experiment, or than the
	// median of several bare runs, as a share of that step. BesideBareRun is null if no bare run of the experiment
	// exists.
	BesideBareRun     *float64 `json:"beside_bare_run"`
	BareSteps         int64    `json:"bare_steps"`
	InstrumentedSteps int64    `json:"instrumented_steps"`
	// RecordedSteps is the number of steps with allocator events, Windows the number of windows they lie in.
	// RecordedSteps and Windows are 0 if an older version ingested the run.
	RecordedSteps int64 `json:"recorded_steps"`
	Windows       int64 `json:"windows"`
	// DrainMS is the wall time of all drains, which happen between steps. DrainShare is DrainMS divided by the
	// recorded time. With several processes, both come from the process with the largest share.
	DrainMS    *float64 `json:"drain_ms"`
	DrainShare *float64 `json:"drain_share"`
	// LinesShare is the share of the recorded time that following the script's lines took, from the cost of one
	// line.
	LinesShare *float64 `json:"lines_share"`
	// CollectorShare is the collector's CPU time while the experiment ran as a part of one core, over the whole run.
	CollectorShare *float64 `json:"collector_share"`
	// CollectorSetupMS and CollectorSealMS are the collector's CPU time before the experiment began and after it had
	// ended. No share includes these times. CollectorSetupMS and CollectorSealMS are null if an older version recorded
	// the run.
	CollectorSetupMS *float64 `json:"collector_setup_ms"`
	CollectorSealMS  *float64 `json:"collector_seal_ms"`
	Warnings         []string `json:"warnings"`

	Remarks    []Remark `json:"-"`
	experiment string   // the experiment that a run and its bare twin share
}

// Cost returns what recording cost a run. Cost needs only the manifest and ingest's report.
func Cost(in schemas.Tables) CostRun {
	c := CostRun{Identity: identity.Of(&in), Warnings: []string{}}
	key := ""
	if in.Manifest.Suite != nil {
		key = in.Manifest.Suite.Key
	}
	c.experiment = identity.TwinKey(&c.Identity, key, identity.ScriptOf(in.Manifest.Command),
		identity.FactsOf(in.Manifest))
	measured := in.Manifest.Source == schemas.Measured
	if end := in.Manifest.End; end != nil && measured {
		if wall := end.Sub(in.Manifest.Start); wall > 0 && in.Manifest.Collector.CPUNS > 0 {
			share := float64(in.Manifest.Collector.CPUNS) / float64(wall)
			c.CollectorShare = &share
		}
		if k := in.Manifest.Collector; k.SetupCPUNS != nil && k.SealCPUNS != nil {
			c.CollectorSetupMS, c.CollectorSealMS = new(float64(*k.SetupCPUNS)/1e6), new(float64(*k.SealCPUNS)/1e6)
		}
	}
	if in.Report == nil {
		c.Remarks = append(c.Remarks, Remark{Kind: RemarkNotIngested})
		return c
	}
	c.Remarks = append(c.Remarks, boundedRemarks(&c.Identity)...)
	c.addDevices(in.Report)
	if measured {
		c.addTimes(in.Report.Cost)
	}
	return c
}

// addDevices adds peaks and conservation from ingest's verdicts on all devices.
func (c *CostRun) addDevices(report *schemas.IngestReport) {
	for i := range report.Devices {
		d := &report.Devices[i]
		c.Events += d.Events
		c.MissingEvents += d.MissingEvents
		c.ResidueBytes = max(c.ResidueBytes, d.ResidueBytes)
		if c.Verdict == "" || d.Verdict != schemas.Exact {
			c.Verdict = d.Verdict
		}
		if d.Events > 0 {
			raise(&c.PeakBytes, &d.PeakAllocatedBytes)
		}
		raise(&c.TorchPeakBytes, d.TorchPeakAllocatedBytes)
		raise(&c.PeakReservedBytes, identity.Higher(d.Events, &d.PeakReservedBytes, d.TorchPeakReservedBytes))
	}
}

// raise sets highest to value if value is higher, or if highest has no value yet.
func raise[T cmp.Ordered](highest **T, value *T) {
	if value != nil && (*highest == nil || *value > **highest) {
		*highest = value
	}
}

// addTimes adds the times that recording cost, each from the rank with the largest cost.
func (c *CostRun) addTimes(ranks []schemas.InstrumentCost) {
	for _, k := range ranks {
		if k.BareStepNS != nil && k.InstrumentedStepNS != nil && *k.BareStepNS > 0 {
			ns := *k.InstrumentedStepNS - *k.BareStepNS
			if k.InstrumentNS != nil {
				ns = *k.InstrumentNS
				c.Remarks = append(c.Remarks, Remark{Kind: RemarkBatchesVary, Rank: oneOf(len(ranks), k.Rank)})
			}
			if ms := float64(ns) / 1e6; c.InstrumentMS == nil || ms > *c.InstrumentMS {
				c.InstrumentMS, c.InstrumentShare = &ms, new(1e6*ms/float64(*k.BareStepNS))
			}
		}
		c.BareSteps, c.InstrumentedSteps = max(c.BareSteps, k.BareSteps), max(c.InstrumentedSteps, k.InstrumentedSteps)
		c.RecordedSteps, c.Windows = max(c.RecordedSteps, k.RecordedSteps), max(c.Windows, k.Windows)
		if k.RecordedNS > 0 {
			if share := float64(k.DrainNS) / float64(k.RecordedNS); c.DrainShare == nil || share > *c.DrainShare {
				c.DrainMS, c.DrainShare = new(float64(k.DrainNS)/1e6), &share
			}
			if k.LinesNS != nil {
				share := float64(*k.LinesNS) / float64(k.RecordedNS)
				raise(&c.LinesShare, &share)
			}
		}
		raise(&c.BareStepMS, milliseconds(k.BareStepNS))
		raise(&c.InstrumentedStepMS, milliseconds(k.InstrumentedStepNS))
	}
	for _, k := range ranks {
		if n := k.CapturedSteps; n > 0 {
			c.Remarks = append(c.Remarks, Remark{Kind: RemarkUntimedSteps, Rank: oneOf(len(ranks), k.Rank), N: int(n)})
		}
	}
	if c.InstrumentShare != nil && *c.InstrumentShare < -leastFaster {
		c.Remarks = append(c.Remarks, Remark{Kind: RemarkFasterSteps})
	}
	if c.DrainShare != nil && *c.DrainShare > MostDraining {
		c.Remarks = append(c.Remarks, Remark{Kind: RemarkDrains, Share: *c.DrainShare})
	}
}

// milliseconds returns nil if the time is not known.
func milliseconds(ns *int64) *float64 {
	if ns == nil {
		return nil
	}
	return new(float64(*ns) / 1e6)
}

// leastFaster is a share of the bare step. If an instrumented step is shorter than a bare step by more than this
// share, a remark says that something else differs.
const leastFaster = 0.05

// MostDraining is the share of wall time that drains should take at most. The agent opens no window whose drains would
// exceed this share. The agent records the first steps in any case.
const MostDraining = 0.05
