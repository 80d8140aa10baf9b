package figures

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// componentsDocument is a *_result.json file of the component profiler. The "mb" keys of a componentsDocument are in
// MiB.
type componentsDocument struct {
	Experiment string              `json:"experiment"`
	Config     map[string]any      `json:"config"`
	AvgTimeMS  *float64            `json:"avg_time_ms"`
	PeakMB     *float64            `json:"peak_memory_mb"`
	Breakdown  map[string]*float64 `json:"breakdown"`
	Snapshots  []struct {
		Name           string   `json:"name"`
		AllocatedMB    *float64 `json:"allocated_mb"`
		ReservedMB     *float64 `json:"reserved_mb"`
		MaxAllocatedMB *float64 `json:"max_allocated_mb"`
		Timestamp      *float64 `json:"timestamp"` // seconds, Unix time
	} `json:"snapshots"`
	// Dpsight is present only in files that dpsight's export wrote in this format.
	Dpsight *struct {
		RunID  string `json:"run_id"`
		Source string `json:"source"`
	} `json:"dpsight"`
}

// normsOnly are the experiments of the component profiler that only compute norms, in one backward pass on a scalar
// loss, without clipping and noise.
var normsOnly = map[string]bool{"ghost": true, "flash_clip": true}

func readComponents(r io.Reader, _ string) ([]Run, error) {
	text, err := document(r)
	if err != nil {
		return nil, err
	}
	var doc componentsDocument
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if doc.Experiment == "" {
		return nil, fmt.Errorf("it names no experiment")
	}
	run := Run{Name: doc.Experiment, Status: schemas.StatusOK, Params: scalars(doc.Config)}
	run.method(&doc)
	peak := higher(bytesOf(doc.PeakMB, mib), bytesOf(doc.Breakdown["peak_allocated_mb"], mib))
	d := Device{Peak: peak}
	d.moments(&doc)
	run.StartNS, run.EndNS = d.span()
	run.impossible(&doc, peak)
	run.meanTime(&doc, &d)
	run.Devices = []Device{d}
	return []Run{run}, nil
}

// scalars returns the entries of a configuration whose values a run's parameter can have: numbers, strings and
// booleans.
func scalars(config map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range config {
		switch v.(type) {
		case string, float64, bool:
			out[k] = v
		}
	}
	return out
}

func (run *Run) method(doc *componentsDocument) {
	switch {
	case doc.Dpsight != nil:
		run.Params["method"] = methodOf(doc.Experiment)
		run.Notes = append(run.Notes, "dpsight export wrote the file, of the "+
			strings.TrimSpace(doc.Dpsight.Source+" run")+" "+doc.Dpsight.RunID)
	case normsOnly[doc.Experiment]:
		run.Params["method"], run.Params["experiment"] = schemas.MethodNormOnly, doc.Experiment
		run.Notes = append(run.Notes, "norm pass only, not private: this profiler's "+doc.Experiment+
			" makes one backward pass that computes norms, clips nothing and adds no noise")
	default:
		run.Params["method"] = methodOf(doc.Experiment)
	}
}

// moments makes phases and steps from the document's snapshots. Each snapshot ends a phase that began with the snapshot
// before it. A step begins where the previous step ended.
func (d *Device) moments(doc *componentsDocument) {
	var last Memory
	var highest *int64
	lastNS, step, open := int64(0), int64(-1), -1
	for i := range doc.Snapshots {
		s := &doc.Snapshots[i]
		now := Memory{bytesOf(s.AllocatedMB, mib), bytesOf(s.ReservedMB, mib)}
		max, ns := bytesOf(s.MaxAllocatedMB, mib), nanoseconds(s.Timestamp, 1e9)
		name, iteration := momentOf(s.Name)
		p := Phase{Name: name, Step: step, StartNS: lastNS, EndNS: ns, Begin: last, End: now, Peak: within(highest, max)}
		if i == 0 || lastNS == 0 || ns < lastNS {
			p.StartNS = ns
		}
		if name == phaseWarmup { // the profiler resets the highest allocated after the warm-up
			p.Peak = nil
		}
		if iteration >= 0 && name == schemas.PhaseBetween {
			d.Steps = append(d.Steps, Step{Number: iteration, StartNS: p.StartNS, Begin: last})
			step, open, p.Step = iteration, len(d.Steps)-1, iteration
		}
		d.Phases = append(d.Phases, p)
		if open >= 0 && iteration == step {
			st := &d.Steps[open]
			st.Peak = higher(st.Peak, p.Peak)
			if name == schemas.PhaseOptimizer {
				st.EndNS, st.End = ns, now
				open = -1
			}
		}
		last, lastNS, highest = now, ns, max
	}
	// If the file does not have the end of an iteration, the iteration does not count as a step.
	d.Steps = slices.DeleteFunc(d.Steps, func(s Step) bool { return s.End == Memory{} || s.EndNS < s.StartNS })
}

const phaseWarmup = "warmup"

// componentMoments are the phases that the profiler's snapshots end.
var componentMoments = map[string]string{
	"model_loaded": schemas.PhaseSetupModel, "wrapped_with_dp": schemas.PhaseSetupWrap,
	"optimizer_created": schemas.PhaseSetupOptimizer, "after_warmup": phaseWarmup,
	"before_forward": schemas.PhaseBetween, "after_forward": schemas.PhaseForward,
	"after_backward": schemas.PhaseBackward, "after_step": schemas.PhaseOptimizer,
}

// momentOf parses a snapshot's name, such as "5_iter0_after_forward". momentOf returns the phase that ended at the
// snapshot, and the iteration, or -1 if the name has no iteration. If the name has another form, momentOf returns it as
// the phase.
func momentOf(name string) (phase string, iteration int64) {
	rest := name
	if n, after, ok := strings.Cut(name, "_"); ok {
		if _, err := strconv.ParseUint(n, 10, 32); err == nil {
			rest = after
		}
	}
	iteration = -1
	if n, after, ok := strings.Cut(strings.TrimPrefix(rest, "iter"), "_"); ok && strings.HasPrefix(rest, "iter") {
		if k, err := strconv.ParseUint(n, 10, 32); err == nil {
			rest, iteration = after, int64(k)
		}
	}
	if phase = componentMoments[rest]; phase == "" {
		phase = rest
	}
	if phase == "" {
		phase = name
	}
	return phase, iteration
}

// span returns the times of the first and of the last figure; 0 if the device has no figures with a time.
func (d *Device) span() (start, end int64) {
	for i := range d.Phases {
		p := &d.Phases[i]
		if p.StartNS > 0 && (start == 0 || p.StartNS < start) {
			start = p.StartNS
		}
		end = max(end, p.EndNS)
	}
	return start, end
}

// impossible adds a note for each component that is larger than the run's peak.
func (run *Run) impossible(doc *componentsDocument, peak *int64) {
	for _, key := range slices.Sorted(maps.Keys(doc.Breakdown)) {
		if b := bytesOf(doc.Breakdown[key], mib); b != nil && key != "total_reserved_mb" {
			run.notAbove(strings.TrimSuffix(key, "_mb"), *b, peak)
		}
	}
	for i := range doc.Snapshots {
		if b := bytesOf(doc.Snapshots[i].AllocatedMB, mib); b != nil {
			run.notAbove("snapshot "+doc.Snapshots[i].Name, *b, peak)
		}
	}
}

// notAbove adds a note if a figure is above the peak, which is impossible.
func (run *Run) notAbove(what string, bytes int64, peak *int64) {
	if peak != nil && bytes > *peak {
		run.Notes = append(run.Notes, fmt.Sprintf("impossible: the file has %s for %s, more than its peak of %s",
			units.MiB(bytes), what, units.MiB(*peak)))
	}
}

// meanTime gives each step the mean time of all steps, since the profiler keeps no other time from CUDA events.
func (run *Run) meanTime(doc *componentsDocument, d *Device) {
	ns := nanoseconds(doc.AvgTimeMS, 1e6)
	if ns == 0 {
		return
	}
	if len(d.Steps) == 0 {
		d.Steps = []Step{{}}
	} else if len(d.Steps) > 1 {
		run.Notes = append(run.Notes, fmt.Sprintf("the file has the mean time of its %d steps alone: each step is given "+
			"that time", len(d.Steps)))
	}
	samples, _ := run.Params["batch_size"].(float64)
	length, _ := run.Params["seq_len"].(float64)
	for i := range d.Steps {
		s := &d.Steps[i]
		s.GPUNS = &ns
		if samples >= 1 && samples < 1<<31 {
			s.Samples = int64(samples)
			if length >= 1 && length < 1<<31 {
				s.Tokens = s.Samples * int64(length)
			}
		}
	}
}
