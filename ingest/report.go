package ingest

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/ingest/join"
	"github.com/dpsight/dpsight/ingest/replay"
	"github.com/dpsight/dpsight/ingest/steps"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/units"
)

// report is the ingest report that an ingest is making.
type report struct {
	schemas.IngestReport
	attached bool // dpsight attached to the process, so the journal ends while the process lives
}

func newReport(m *schemas.Manifest, o Options) *report {
	return &report{attached: m.Attached != nil, IngestReport: schemas.IngestReport{RunID: m.RunID, Version: o.Version,
		Rules: RulesVersion, RulesHash: RulesHash(),
		Devices: []schemas.DeviceVerdict{}, Ranks: []schemas.RankVerdict{}, Cost: []schemas.InstrumentCost{},
		OOMs: []schemas.OOM{}, Metrics: []schemas.Metric{}, Warnings: []string{}}}
}

func (r *report) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// warnOfReplay warns about inconsistencies in the events of a device.
func (r *report) warnOfReplay(rank int32, rec *recording, res *replay.Result) {
	if s := res.Anomalies.Reason(); s != "" {
		r.warn("rank %d, device %d: %s", rank, rec.device, s)
	}
	if rec.unknown > 0 {
		r.warn("rank %d, device %d: %s that this dpsight does not know; what they did is not counted", rank,
			rec.device, units.Plural(int(rec.unknown), "event has an action", "events have actions"))
	}
	if rec.backwards > 0 {
		r.warn("rank %d, device %d: times run backwards at %s", rank, rec.device,
			units.Plural(int(rec.backwards), "event", "events"))
	}
	if rec.unverified > 0 {
		r.warn("rank %d, device %d: %s at the end without counters to be checked against", rank, rec.device,
			units.Plural(int(rec.unverified), "event", "events"))
	}
	if rec.resetPeaks {
		r.warn("rank %d, device %d: the script reset torch's peak counters; they are compared interval by interval",
			rank, rec.device)
	}
}

// warnOfTags warns about tags that fit several blocks of a device.
func (r *report) warnOfTags(rank, device int32, joined *join.Result) {
	for _, a := range joined.Ambiguous {
		r.warn("rank %d, device %d: %s", rank, device, a)
	}
	if more := joined.AmbiguousTags - int64(len(joined.Ambiguous)); more > 0 {
		r.warn("rank %d, device %d: %d more ambiguous tags", rank, device, more)
	}
}

// maxDamaged is the highest number of damaged frames that warnings name one by one.
const maxDamaged = 5

// addRank adds the facts in a rank's journal to the report: the number of records, failed hooks, steps, costs and
// failed requests.
func (r *report) addRank(m *schemas.Manifest, j *spool.Journal, s *steps.Result, ctx *join.Context, recs []*recording) {
	v := schemas.RankVerdict{Rank: j.Rank, Marks: int64(len(j.Marks)), Frames: j.Frames, Complete: j.End != nil}
	if j.Torn != nil {
		v.Torn, v.TornReason = true, j.Torn.Error()
	}
	v.FailedHooks = failedHooks(j, s)
	for _, f := range v.FailedHooks {
		r.warn("rank %d: %s", j.Rank, f.Words())
	}
	r.Ranks = append(r.Ranks, v)
	for i, err := range j.Damaged {
		if i == maxDamaged {
			r.warn("rank %d: %d more frames could not be read", j.Rank, len(j.Damaged)-i)
			break
		}
		r.warn("rank %d: %v", j.Rank, err)
	}
	if j.End == nil {
		r.warn("rank %d: the process ended without its last word; what came after the last drain is lost", j.Rank)
	}
	if e := j.Environment; e != nil && e.AllocatorBackend != nil && *e.AllocatorBackend != "native" {
		r.warn("rank %d: the allocator backend %s keeps no history: there are counters only", j.Rank,
			*e.AllocatorBackend)
	}
	// If a run raised an exception in its first step, it had not reached its first update. In such a run, steps that
	// end with backward do not show that the script has no optimizer.
	if s.Rule == steps.RuleBackward && (j.Exception == nil || len(s.Steps) > 1) {
		r.warn("rank %d: no optimizer step was seen; each backward pass counts as a step (dpsight.step() says it "+
			"better)", j.Rank)
	}
	r.warnOfLines(j)
	// The report's rule for steps is the rule of the rank with the most steps.
	if n := int64(len(s.Steps)); r.Steps.Rule == "" || n > r.Steps.Derived {
		r.Steps = schemas.StepDerivation{Rule: s.Rule, Derived: n, Optimizers: int64(s.Optimizers)}
	}
	r.Cost = append(r.Cost, instrumentCost(m, j, s, ctx))
	r.addFailures(j, ctx, recs)
	for _, x := range j.Metrics {
		r.Metrics = append(r.Metrics, schemas.Metric{Rank: j.Rank, K: int64(x.K), TimeNS: x.TimeNS, Name: x.Name,
			Value: x.Value})
	}
}

// warnOfLines adds a warning with the reason why lines of the script are unknown.
func (r *report) warnOfLines(j *spool.Journal) {
	l := j.Lines
	if l == nil {
		return
	}
	switch {
	case l.Reason != "" && l.By == "":
		r.warn("rank %d: the lines of the script are not known: %s", j.Rank, l.Reason)
	case l.Reason != "":
		r.warn("rank %d: from some moment on the lines of the script are not known: %s", j.Rank, l.Reason)
	}
	if l.Skipped > 0 {
		r.warn("rank %d: the lines of %s are not known: following those before had taken 5 %% of the time", j.Rank,
			units.Plural(int(l.Skipped), "instrumented step", "instrumented steps"))
	}
}

// failedHooks returns the agent's hooks that failed, each with the step in which it failed.
func failedHooks(j *spool.Journal, s *steps.Result) (out []schemas.FailedHook) {
	for i := range j.Failures {
		f := schemas.FailedHook{Hook: j.Failures[i].Hook, Error: j.Failures[i].Error, Step: -1, Fatal: j.Failures[i].Fatal}
		for k := range s.Steps {
			if s.Steps[k].StartNS <= j.Failures[i].TimeNS {
				f.Step = s.Steps[k].Number
			}
		}
		out = append(out, f)
	}
	return out
}

// maxBareSteps is the highest number of bare steps that the report lists, since a recording may have very many.
const maxBareSteps = 1000

// listed returns the first bare steps. If the step of the peak is a later bare step, listed returns this step too.
func listed(all []schemas.BareStep, peak int64) []schemas.BareStep {
	out := all[:min(len(all), maxBareSteps)]
	if rest := all[len(out):]; len(rest) > 0 {
		if i := slices.IndexFunc(rest, func(b schemas.BareStep) bool { return b.Step == peak }); i >= 0 {
			out = append(slices.Clone(out), rest[i])
		}
	}
	return out
}

// warnOfDevices adds warnings about the verdicts on devices.
func (r *report) warnOfDevices() {
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Verdict == schemas.Lossy {
			r.warn("rank %d, device %d: %s", d.Rank, d.Device, d.Reason)
		}
		if t := d.TorchPeakAllocatedBytes; d.Events > 0 && t != nil && *t > d.PeakAllocatedBytes &&
			d.Verdict == schemas.Exact {
			r.warn("rank %d, device %d: torch's peak of %s lies outside the recorded steps (there it is %s) and is "+
				"not broken down",
				d.Rank, d.Device, units.MiB(*t), units.MiB(d.PeakAllocatedBytes))
		}
		if d.UnboundTags > 0 {
			r.warn("rank %d: %s that the allocator never had", d.Rank,
				units.Plural(int(d.UnboundTags), "tag names an address", "tags name addresses"))
		}
	}
}
