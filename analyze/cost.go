package analyze

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// CostSchema is the version of [CostDocument].
const CostSchema = "dpsight.cost/1"

// CostDocument is what "dpsight analyze cost --format json" prints.
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
		doc.Runs[i].besideTwin(runs)
	}
	return doc
}

// besideTwin says where the peaks of a recorded run are not those of the bare run of the same experiment, which is what
// recording should not change.
func (c *CostRun) besideTwin(runs []CostRun) {
	if c.Bare() || c.Status != schemas.StatusOK {
		return
	}
	for i := range runs {
		twin := &runs[i]
		if !twin.Bare() || twin.Status != schemas.StatusOK || twin.experiment != c.experiment {
			continue
		}
		differ := func(what string, ours, theirs *int64) string {
			if ours == nil || theirs == nil || *ours == *theirs {
				return ""
			}
			way := "more"
			if *ours < *theirs {
				way = "less"
			}
			return fmt.Sprintf("it %s %s %s than its bare twin %s (%s, and %s)", what, mib(magnitude(*ours-*theirs)), way, twin.title(), mib(*ours), mib(*theirs))
		}
		allocated, reserved := differ("allocated", c.TorchPeakBytes, twin.TorchPeakBytes), differ("reserved", c.PeakReservedBytes, twin.PeakReservedBytes)
		c.Warnings = slices.Clone(c.Warnings)
		if allocated != "" {
			c.Warnings = append(c.Warnings, "at its peak "+allocated)
		} else if reserved != "" {
			reserved += ", with the same peak allocated: the difference is memory that the allocator cached, not what the run holds"
		}
		if reserved != "" {
			c.Warnings = append(c.Warnings, "at its highest "+reserved)
		}
		return
	}
}

// CostRun is what the instrument cost one run, and the proof that it lost nothing and moved nothing.
type CostRun struct {
	Identity
	// PeakBytes is replayed, TorchPeakBytes torch's own counter, of the device with the highest; a bare run has only the latter.
	PeakBytes      *int64 `json:"peak_bytes"`
	TorchPeakBytes *int64 `json:"torch_peak_bytes"`
	// PeakReservedBytes is the most that the caching allocator had reserved on any device.
	PeakReservedBytes *int64 `json:"peak_reserved_bytes"`
	Verdict           string `json:"verdict"`
	Events            int64  `json:"events"`
	MissingEvents     int64  `json:"missing_events"`
	ResidueBytes      int64  `json:"residue_bytes"`
	// The median step without and with module hooks and tags; null where there is none, and for predicted runs.
	BareStepMS         *float64 `json:"bare_step_ms"`
	InstrumentedStepMS *float64 `json:"instrumented_step_ms"`
	// DrainMS is the wall time of all drains, which lie between steps; DrainShare its part of the recorded time. Of several
	// processes it is the one whose part is the largest.
	DrainMS    *float64 `json:"drain_ms"`
	DrainShare *float64 `json:"drain_share"`
	// CollectorShare is the collector's CPU time as a part of one core, over the whole run.
	CollectorShare *float64 `json:"collector_share"`
	Warnings       []string `json:"warnings"`

	experiment string // that a bare twin shares
}

// Cost tabulates the instrument's cost. It needs no tables beside the manifest and ingest's report.
func Cost(in Input) CostRun {
	c := CostRun{Identity: identify(in.Manifest), Warnings: []string{}}
	key := ""
	if in.Manifest.Suite != nil {
		key = in.Manifest.Suite.Key
	}
	c.experiment = twinKey(&c.Identity, key, factsOf(in.Manifest))
	measured := in.Manifest.Source == schemas.Measured
	if end := in.Manifest.End; end != nil && measured {
		if wall := end.Sub(in.Manifest.Start); wall > 0 && in.Manifest.Collector.CPUNS > 0 {
			share := float64(in.Manifest.Collector.CPUNS) / float64(wall)
			c.CollectorShare = &share
		}
	}
	if in.Report == nil {
		c.Warnings = append(c.Warnings, "not ingested yet")
		return c
	}
	for i := range in.Report.Devices {
		d := &in.Report.Devices[i]
		c.Events += d.Events
		c.MissingEvents += d.MissingEvents
		c.ResidueBytes = max(c.ResidueBytes, d.ResidueBytes)
		if c.Verdict == "" || d.Verdict != schemas.Exact {
			c.Verdict = d.Verdict
		}
		if d.Events > 0 && (c.PeakBytes == nil || d.PeakAllocatedBytes > *c.PeakBytes) {
			c.PeakBytes = &d.PeakAllocatedBytes
		}
		if p := d.TorchPeakAllocatedBytes; p != nil && (c.TorchPeakBytes == nil || *p > *c.TorchPeakBytes) {
			c.TorchPeakBytes = p
		}
		if r := higher(d.Events, &d.PeakReservedBytes, d.TorchPeakReservedBytes); r != nil && (c.PeakReservedBytes == nil || *r > *c.PeakReservedBytes) {
			c.PeakReservedBytes = r
		}
	}
	if !measured {
		return c
	}
	slowest := func(at **float64, ns *int64) {
		if ns != nil {
			if ms := float64(*ns) / 1e6; *at == nil || ms > **at {
				*at = &ms
			}
		}
	}
	for _, k := range in.Report.Cost {
		if k.RecordedNS > 0 {
			if share := float64(k.DrainNS) / float64(k.RecordedNS); c.DrainShare == nil || share > *c.DrainShare {
				c.DrainMS, c.DrainShare = new(float64(k.DrainNS)/1e6), &share
			}
		}
		slowest(&c.BareStepMS, k.BareStepNS)
		slowest(&c.InstrumentedStepMS, k.InstrumentedStepNS)
	}
	return c
}
