package collect

import (
	"errors"
	"fmt"
	"time"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/launch"
	"github.com/dpsight/dpsight/schemas/spool"
	"github.com/dpsight/dpsight/schemas/units"
)

// conclude reads the agents' journals, determines how the run ended, and seals the journals.
func (r *recording) conclude(c *child, watch *torchWatch, lastError string) error {
	m := r.manifest
	m.Collector.LeftRunning = c.exit.LeftRunning
	if c.exit.Stuck > 0 {
		r.warn("dpsight could not kill " + units.Plural(c.exit.Stuck, "process", "processes") + " of the run")
	}
	masking := maskJournals(r.spool, r.secrets)
	journals, reading := spool.ReadDir(r.spool)
	outcome(m, c.exit, r.why, journals, lastError)
	if c.lost {
		m.Status, m.Reason = schemas.StatusKilled, "the process that holds the experiment was killed"
	}
	recorded(m, journals)
	r.garbage = spool.GarbageOf(journals)
	if m.Status == schemas.StatusFailed {
		r.suspects = suspects(journals)
		m.Reason += suspicion(r.suspects)
	}
	m.Params = r.secrets.Params(m.Params)
	m.Collector.Uninjected = watch.uninjected(journals, r.secrets)
	for _, command := range m.Collector.Uninjected {
		r.warn("a process loaded torch, but left no recording: it trained nothing, or ran without the agent: " + command)
	}
	if len(journals) == 0 && reading == nil && len(m.Collector.Uninjected) == 0 {
		r.warn("nothing was recorded: no process of the run trained with torch" + scriptless(m.Command))
	}
	if masking != nil {
		// A journal that may still contain a secret is not sealed.
		return fmt.Errorf("masking the journals: %w", masking)
	}
	sealed, sealing := spool.Seal(r.spool)
	m.Collector.SealedJournals = sealed
	r.journals = len(journals)
	return errors.Join(reading, sealing, silenced(journals))
}

// scriptless returns a hint if a command starts a Python interpreter without a script.
func scriptless(command []string) string {
	if len(command) != 1 || !launch.IsPython(command[0]) {
		return ""
	}
	python := launch.Base(command[0])
	return "; the command names no script: write it after " + python + ", as in " + python + " train.py"
}

// silenced returns the error of a run in which an agent had to stop recording.
func silenced(journals []*spool.Journal) error {
	for _, j := range journals {
		for i := range j.Failures {
			if f := &j.Failures[i]; f.Fatal {
				return fmt.Errorf("rank %d: %s failed (%s), and the agent stopped recording", j.Rank, f.Hook, f.Error)
			}
		}
	}
	return nil
}

// unseen returns an error if a run used a device and ended well, but nothing was recorded. Otherwise it returns
// nil.
func (r *recording) unseen() error {
	m := r.manifest
	if m.Status != schemas.StatusOK || m.Phantom == nil || r.journals > 0 {
		return nil
	}
	for _, d := range m.Phantom.Devices {
		if d.ReservedBytes > 0 {
			return fmt.Errorf("the experiment used memory of device %d, but the agent recorded nothing: see the "+
				"experiment's output for the cause", d.Device)
		}
	}
	return nil
}

// finish writes the final manifest.
func (r *recording) finish(errs error) error {
	m := r.manifest
	end := time.Now().UTC()
	m.End = &end
	if m.Status == schemas.StatusPartial { // the experiment was not started
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
	sampled, err := schemas.TableDigests(r.dir, schemas.SampledTables()...)
	m.Tables = sampled
	r.last()
	err = errors.Join(errs, err, schemas.WriteManifest(r.dir, m))
	elapsed := time.Duration(0)
	if !r.started.IsZero() {
		elapsed = time.Since(r.started)
	}
	r.progress(Progress{Elapsed: elapsed, Steps: r.steps, Status: m.Status, Reason: m.Reason})
	return err
}
