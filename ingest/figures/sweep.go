package figures

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// sweepConfig are the parameters that a sweep varies.
type sweepConfig struct {
	SeqLength            *float64 `json:"seq_length"`
	BatchSize            *float64 `json:"batch_size"`
	MaxPhysicalBatchSize *float64 `json:"max_physical_batch_size"`
	IsLoRA               *bool    `json:"is_lora"`
	LoRARank             *float64 `json:"lora_rank"`
}

// sweepDocument is one configuration in memory_profile_results.json or detailed_memory_results.json. The second file's
// snapshots are in GiB and have no highest values.
type sweepDocument struct {
	sweepConfig
	Config        *sweepConfig        `json:"config"`
	PeakMemory    *float64            `json:"peak_memory"` // peak memory in bytes
	ExecutionTime *float64            `json:"execution_time"`
	Breakdown     map[string]*float64 `json:"memory_breakdown"` // bytes in use, by moment
	Detailed      struct {
		Components         map[string]map[string]*float64 `json:"components"` // bytes, by component
		GradientEstimate   *float64                       `json:"gradient_estimate"`
		ActivationEstimate *float64                       `json:"activation_estimate"`
	} `json:"detailed_breakdown"`
	Snapshots []sweepSnapshot `json:"snapshots"`
}

type sweepSnapshot struct {
	Timestamp    *float64 `json:"timestamp"` // seconds since the configuration began
	Allocated    *float64 `json:"allocated"`
	Reserved     *float64 `json:"reserved"`
	MaxAllocated *float64 `json:"max_allocated"`
	MaxReserved  *float64 `json:"max_reserved"`
	AllocatedGB  *float64 `json:"allocated_gb"`
	ReservedGB   *float64 `json:"reserved_gb"`
	Stage        string   `json:"stage"`
}

func readSweep(r io.Reader, name string) ([]Run, error) {
	text, err := document(r)
	if err != nil {
		return nil, err
	}
	var docs []sweepDocument
	if err := json.Unmarshal(text, &docs); err != nil {
		return nil, err
	}
	runs := make([]Run, len(docs))
	for i := range docs {
		runs[i] = docs[i].run(stem(name))
	}
	return runs, nil
}

// stem returns a file's name without its ending.
func stem(name string) string {
	for _, suffix := range []string{".json", ".csv", ".log", ".txt"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

func (doc *sweepDocument) run(name string) Run {
	config := &doc.sweepConfig
	if doc.Config != nil {
		config = doc.Config
	}
	run := Run{Params: config.params(), Status: schemas.StatusOK}
	run.Name = config.name(name)
	d := Device{Peak: bytesOf(doc.PeakMemory, 1)}
	d.stages(doc.Snapshots)
	for i := range doc.Snapshots {
		d.PeakReserved = higher(d.PeakReserved, bytesOf(doc.Snapshots[i].MaxReserved, 1))
		d.Peak = higher(d.Peak, bytesOf(doc.Snapshots[i].MaxAllocated, 1))
	}
	for _, component := range slices.Sorted(maps.Keys(doc.Detailed.Components)) {
		var sum float64
		for _, v := range doc.Detailed.Components[component] {
			if v != nil {
				sum += *v
			}
		}
		if b := bytesOf(&sum, 1); b != nil {
			run.notAbove("component "+component, *b, d.Peak)
		}
	}
	for _, estimate := range []struct {
		what  string
		bytes *float64
	}{{"gradient_estimate", doc.Detailed.GradientEstimate}, {"activation_estimate", doc.Detailed.ActivationEstimate}} {
		if b := bytesOf(estimate.bytes, 1); b != nil {
			run.notAbove(estimate.what, *b, d.Peak)
		}
	}
	for _, moment := range slices.Sorted(maps.Keys(doc.Breakdown)) {
		if b := bytesOf(doc.Breakdown[moment], 1); b != nil {
			run.notAbove(moment, *b, d.Peak)
		}
	}
	run.Devices = []Device{d}
	return run
}

// params returns the parameters of the configuration under dpsight's names.
func (c *sweepConfig) params() map[string]any {
	out := map[string]any{}
	for name, v := range map[string]*float64{"seq_len": c.SeqLength, "batch_size": c.BatchSize,
		"physical_batch_size": c.MaxPhysicalBatchSize} {
		if v != nil {
			out[name] = *v
		}
	}
	if c.IsLoRA != nil {
		out["lora"] = *c.IsLoRA
		if *c.IsLoRA && c.LoRARank != nil {
			out["lora_rank"] = *c.LoRARank
		}
	}
	return out
}

// name returns a name for a run of the configuration that distinguishes it from other configurations of the file.
func (c *sweepConfig) name(file string) string {
	for _, part := range []struct {
		word string
		v    *float64
	}{{"seq", c.SeqLength}, {"bs", c.BatchSize}, {"phys", c.MaxPhysicalBatchSize}} {
		if part.v != nil {
			file += "_" + part.word + strconv.FormatFloat(*part.v, 'f', -1, 64)
		}
	}
	if c.IsLoRA != nil && *c.IsLoRA && c.LoRARank != nil {
		file += "_lora" + strconv.FormatFloat(*c.LoRARank, 'f', -1, 64)
	}
	return file
}

// stagePhases maps the stages of the sweep profilers to dpsight's phases. A stage that contains other stages is a phase
// only while no inner stage is open.
var stagePhases = map[string]string{
	"model_loading": schemas.PhaseSetupModel, "model_download": schemas.PhaseSetupModel,
	"tokenizer_loading": schemas.PhaseSetupData, "dataset_preparation": schemas.PhaseSetupData,
	"lora_setup": schemas.PhaseSetupModel, "fsdp_wrapping": schemas.PhaseSetupWrap,
	"optimizer_setup": schemas.PhaseSetupOptimizer, "privacy_engine_setup": schemas.PhaseSetupPrivacy,
	"batch_memory_manager_setup": schemas.PhaseSetupPrivacy,
	"training_loop":              schemas.PhaseBetween,
	"forward_pass":               schemas.PhaseForward, "loss_computation": schemas.PhaseForward,
	"backward_pass": schemas.PhaseBackward, "optimizer_step": schemas.PhaseOptimizer,
	"optimizer_zero_grad": schemas.PhaseZeroGrad,
	// The stages profiler uses the following names.
	"Model Creation": schemas.PhaseSetupModel, "DP Setup": schemas.PhaseSetupPrivacy,
	"Forward Pass": schemas.PhaseForward, "Backward Pass": schemas.PhaseBackward,
	"Optimizer Step": schemas.PhaseOptimizer, "Zero Gradients": schemas.PhaseZeroGrad,
}

const stepStage = "training_step_"

func phaseOfStage(stage string) string {
	switch phase := stagePhases[stage]; {
	case phase != "":
		return phase
	case stage == "" || strings.HasPrefix(stage, stepStage):
		return schemas.PhaseBetween
	}
	return stage
}

// stages makes phases and steps from snapshots at the beginnings and ends of stages, which may be nested. The time
// between two snapshots belongs to the innermost stage.
func (d *Device) stages(snapshots []sweepSnapshot) {
	var last Memory
	var highest *int64
	lastNS, step := int64(0), int64(-1)
	var open []string
	for i := range snapshots {
		s := &snapshots[i]
		now := Memory{bytesOf(s.Allocated, 1), bytesOf(s.Reserved, 1)}
		if now.Allocated == nil {
			now = Memory{bytesOf(s.AllocatedGB, gib), bytesOf(s.ReservedGB, gib)}
		}
		max, ns := bytesOf(s.MaxAllocated, 1), nanoseconds(s.Timestamp, 1e9)
		innermost := ""
		if len(open) > 0 {
			innermost = open[len(open)-1]
		}
		if i > 0 && ns >= lastNS {
			p := Phase{Name: phaseOfStage(innermost), Step: step, StartNS: lastNS, EndNS: ns, Begin: last, End: now,
				Peak: within(highest, max)}
			d.Phases = append(d.Phases, p)
			if n := len(d.Steps); step >= 0 && n > 0 && d.Steps[n-1].Number == step {
				d.Steps[n-1].Peak = higher(d.Steps[n-1].Peak, p.Peak)
			}
		}
		if stage, ok := strings.CutSuffix(s.Stage, "_start"); ok {
			if n, err := strconv.ParseUint(strings.TrimPrefix(stage, stepStage), 10, 32); err == nil &&
				strings.HasPrefix(stage, stepStage) {
				step = int64(n)
				d.Steps = append(d.Steps, Step{Number: step, StartNS: ns, Begin: now})
			}
			open = append(open, stage)
		} else if stage, ok := strings.CutSuffix(s.Stage, "_end"); ok {
			if at := slices.Index(open, stage); at >= 0 {
				open = open[:at]
			}
			if n := len(d.Steps); n > 0 && stage == stepStage+strconv.FormatInt(d.Steps[n-1].Number, 10) {
				d.Steps[n-1].EndNS, d.Steps[n-1].End = ns, now
				step = -1
			}
		}
		last, lastNS, highest = now, ns, max
	}
	d.Steps = slices.DeleteFunc(d.Steps, func(s Step) bool { return s.End == Memory{} || s.EndNS < s.StartNS })
}

// stagesDocument is one stage as the single-GPU profiler writes it, in MiB. The single-GPU profiler resets torch's peak
// counter before each stage.
type stagesDocument struct {
	Stage         string `json:"stage"`
	Before, After stageMemory
}

type stageMemory struct {
	Allocated    *float64 `json:"allocated"`
	Reserved     *float64 `json:"reserved"`
	MaxAllocated *float64 `json:"max_allocated"`
}

func (m *stageMemory) memory() Memory {
	return Memory{bytesOf(m.Allocated, mib), bytesOf(m.Reserved, mib)}
}

func readStages(r io.Reader, name string) ([]Run, error) {
	text, err := document(r)
	if err != nil {
		return nil, err
	}
	var docs []stagesDocument
	if err := json.Unmarshal(text, &docs); err != nil {
		return nil, err
	}
	run := Run{Name: stem(name), Params: map[string]any{}, Status: schemas.StatusOK}
	var d Device
	step := int64(-1)
	for i := range docs {
		s := &docs[i]
		phase := phaseOfStage(s.Stage)
		if phase == schemas.PhaseForward {
			step++
		}
		p := Phase{Name: phase, Step: step, Begin: s.Before.memory(), End: s.After.memory(),
			Peak: bytesOf(s.After.MaxAllocated, mib)}
		d.Phases = append(d.Phases, p)
		d.Peak = higher(d.Peak, p.Peak)
	}
	d.Why = "the highest of the stages, before each of which the profiler reset torch's counter"
	run.Devices = []Device{d}
	return []Run{run}, nil
}

// peakColumn is the column of memory_profile_summary.csv that no other table has.
const peakColumn = "peak_memory_gb"

func readSweepTable(r io.Reader, name string) ([]Run, error) {
	rows := csv.NewReader(limited(r))
	rows.FieldsPerRecord = -1
	head, err := rows.Read()
	if err != nil {
		return nil, err
	}
	head = slices.Clone(head)
	var runs []Run
	for {
		fields, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return runs, nil
		}
		if err != nil {
			return nil, err
		}
		if len(fields) > len(head) {
			return nil, fmt.Errorf("row %d has more fields than there are columns", len(runs)+1)
		}
		of := map[string]string{}
		for i, f := range fields {
			of[strings.TrimSpace(head[i])] = strings.TrimSpace(f)
		}
		number := func(column string) *float64 {
			if v, err := strconv.ParseFloat(of[column], 64); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
				return &v
			}
			return nil
		}
		c := sweepConfig{SeqLength: number("seq_length"), BatchSize: number("batch_size"),
			MaxPhysicalBatchSize: number("max_physical_batch_size"), LoRARank: number("lora_rank")}
		if is, err := strconv.ParseBool(of["is_lora"]); err == nil {
			c.IsLoRA = &is
		}
		runs = append(runs, Run{Name: c.name(stem(name)), Params: c.params(), Status: schemas.StatusOK,
			Devices: []Device{{Peak: bytesOf(number(peakColumn), gib)}}})
	}
}
