package collect

import (
	"errors"
	"fmt"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// conclude reads what the agents wrote, says how the run ended, and seals it.
func (r *recording) conclude(c *child, watch *torchWatch, lastError string) error {
	m := r.manifest
	m.Collector.LeftRunning = c.exit.LeftRunning
	if c.exit.Stuck > 0 {
		r.warn(plural(c.exit.Stuck, "process", "processes") + " of the run could not be killed")
	}
	masking := maskJournals(r.spool, r.secrets)
	journals, reading := spool.ReadDir(r.spool)
	outcome(m, c.exit, r.why, journals, lastError)
	if c.lost {
		m.Status, m.Reason = schemas.StatusKilled, "the process that holds the experiment was killed"
	}
	recorded(m, journals)
	r.garbage = spool.GarbageOf(journals)
	m.Params = r.secrets.Params(m.Params)
	m.Collector.Uninjected = watch.uninjected(journals, r.secrets)
	for _, command := range m.Collector.Uninjected {
		r.warn("nothing was recorded of a process that loaded torch, which ran without the agent or trained nothing: " +
			command)
	}
	if len(journals) == 0 && reading == nil && len(m.Collector.Uninjected) == 0 {
		r.warn("nothing was recorded: no process of the run trained with torch")
	}
	if masking != nil {
		// What may hold a secret is not sealed as if it held none.
		return fmt.Errorf("masking the journals: %w", masking)
	}
	sealed, sealing := spool.Seal(r.spool)
	m.Collector.SealedJournals = sealed
	return errors.Join(reading, sealing)
}

// finish writes the last manifest.
func (r *recording) finish(errs error) error {
	m := r.manifest
	end := time.Now().UTC()
	m.End = &end
	if m.Status == schemas.StatusPartial { // the experiment was never started
		m.Status = schemas.StatusFailed
	}
	if errs != nil {
		if m.Reason == "the collector did not finish" {
			m.Reason = r.secrets.String(firstLine(errs.Error()))
		}
		r.warn("recording: " + firstLine(errs.Error()))
	}
	m.Reason = r.secrets.String(m.Reason)
	if !r.started.IsZero() {
		seal := r.cpu.part()
		m.Collector.SealCPUNS = &seal
	}
	m.Interrupted = r.why.signal != nil || r.why.cancelled
	err := errors.Join(errs, schemas.WriteManifest(r.dir, m))
	elapsed := time.Duration(0)
	if !r.started.IsZero() {
		elapsed = time.Since(r.started)
	}
	r.progress(Progress{Elapsed: elapsed, Steps: r.steps, Status: m.Status, Reason: m.Reason})
	return err
}
