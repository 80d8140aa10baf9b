package report_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
)

const mib = 1 << 20

// block is a tensor of a made-up run. block has the requested MiB, its owners, and whether it is freed within the step.
type block struct {
	mib    float64
	owners []schemas.Category
	freed  bool
}

// madeUp describes a run of set-up and steps, with the tables that ingest would write. Each step has a forward, a
// backward and an optimizer. A made-up run allocates its kept blocks first. After them, each step allocates its freed
// blocks, which are highest in backward.
type madeUp struct {
	id, name, status, source, reason string
	params                           map[string]any
	bare                             bool
	blocks                           []block
	stepNS                           int64
	steps                            int
	suiteKey                         string
	noPhases                         bool
}

func (m madeUp) input() schemas.Tables {
	in := m.tables()
	in.Confidence = report.ConfidenceOf(&in)
	return in
}

func (m madeUp) tables() schemas.Tables {
	start := time.Date(2026, 11, 21, 10, 15, 0, 0, time.UTC)
	torch, profile := "2.11.0", "h200"
	manifest := &schemas.Manifest{RunID: m.id, Name: m.name, Source: m.source, Status: m.status, Reason: m.reason,
		Params: m.params, Bare: m.bare,
		Start: start, GPUs: []schemas.GPU{{Name: "NVIDIA H200", UUID: "GPU-0", TotalBytes: 140 << 30}},
		Environment: &schemas.Environment{Torch: torch}}
	if m.suiteKey != "" {
		manifest.Suite = &schemas.SuiteRef{Name: "made-up", Key: m.suiteKey}
	}
	if m.source == schemas.Predicted {
		manifest.Profile = &profile
	}
	in := schemas.Tables{Manifest: manifest, Report: &schemas.IngestReport{RunID: m.id}}
	if m.blocks == nil {
		return in
	}
	var seq, live, peak, peakSeq, highest, highestSeq int64
	var firstOwner []int // the index of an allocation's first owner, by the allocation's index
	alloc := func(b block, phase string, step int64) int {
		seq++
		bytes := int64(b.mib * mib)
		size := (bytes + 511) / 512 * 512
		live += size
		if live > peak {
			peak, peakSeq = live, seq
		}
		if live > highest {
			highest, highestSeq = live, seq
		}
		id := int64(len(in.Allocations) + 1)
		in.Allocations = append(in.Allocations, schemas.Allocation{RunID: m.id, AllocID: id, RequestedBytes: bytes,
			BlockBytes: size,
			AllocSeq:   seq, Step: step, Phase: phase})
		firstOwner = append(firstOwner, len(in.Owners))
		for _, c := range b.owners {
			in.Owners = append(in.Owners, schemas.Owner{RunID: m.id, AllocID: id, Category: c, BeginSeq: seq,
				EndObserved: true, Evidence: schemas.Tagged})
		}
		return int(id - 1)
	}
	free := func(i int) {
		seq++
		live -= in.Allocations[i].BlockBytes
		in.Allocations[i].FreeRequestedSeq, in.Allocations[i].FreeCompletedSeq = seq, seq
		for k := firstOwner[i]; k < len(in.Owners) && in.Owners[k].AllocID == int64(i+1); k++ {
			in.Owners[k].EndSeq = seq
		}
	}
	clock := start.UnixNano()
	phase := func(name string, step, from, before int64) {
		in.Phases = append(in.Phases, schemas.Phase{RunID: m.id, Step: step, Phase: name, BeginK: from + 1,
			EndK: seq + 1, BeginSeq: from, EndSeq: seq,
			StartNS: clock, EndNS: clock + m.stepNS/3, GPUNS: new(m.stepNS / 3), AllocatedBegin: new(before),
			AllocatedEnd: new(live), PeakBytes: new(highest), PeakSeq: highestSeq})
		highest, highestSeq = live, 0
		clock += m.stepNS / 3
	}
	for _, b := range m.blocks {
		if !b.freed {
			alloc(b, schemas.PhaseSetupModel, -1)
		}
	}
	phase(schemas.PhaseSetupModel, -1, 0, 0)
	for step := range int64(m.steps) {
		begin, beginNS := seq, clock
		var made []int
		before, from := live, seq
		for _, b := range m.blocks {
			if b.freed && !slices.Contains(b.owners, schemas.Gradients) {
				made = append(made, alloc(b, schemas.PhaseForward, step))
			}
		}
		phase(schemas.PhaseForward, step, from, before)
		before, from = live, seq
		for _, b := range m.blocks {
			if b.freed && slices.Contains(b.owners, schemas.Gradients) {
				made = append(made, alloc(b, schemas.PhaseBackward, step))
			}
		}
		for _, i := range made {
			free(i)
		}
		phase(schemas.PhaseBackward, step, from, before)
		phase(schemas.PhaseOptimizer, step, seq, live)
		in.Steps = append(in.Steps, schemas.Step{RunID: m.id, Step: step, Microbatches: 1, Warmup: step < 2,
			Instrumented: step < 2, Recorded: true,
			Samples: 4, Tokens: 4 * 512, BeginSeq: begin, EndSeq: seq, StartNS: beginNS, EndNS: clock,
			WallNS: m.stepNS + step*1e5, GPUNS: m.stepNS + step*1e5})
	}
	if m.noPhases {
		in.Steps, in.Phases = nil, nil
	}
	if m.source == schemas.Predicted {
		for i := range in.Steps {
			in.Steps[i].GPUNS = 0
		}
		for i := range in.Phases {
			in.Phases[i].GPUNS = nil
		}
	}
	verdict := schemas.DeviceVerdict{Verdict: schemas.Exact, Events: seq, PeakSeq: peakSeq, PeakAllocatedBytes: peak,
		PeakReservedBytes:       peak + 32*mib,
		TorchPeakAllocatedBytes: &peak, InstrumentedPeakSeq: &peakSeq}
	if m.bare {
		reserved := peak + 32*mib
		verdict = schemas.DeviceVerdict{Verdict: schemas.Unverifiable, TorchPeakAllocatedBytes: &peak,
			TorchPeakReservedBytes: &reserved}
		in.Allocations, in.Owners = nil, nil
	}
	in.Report.Devices = []schemas.DeviceVerdict{verdict}
	if !m.bare {
		for i, size := range []int64{peak / 2, peak + 32*mib - peak/2} { // reserved grows in two parts
			in.Events = append(in.Events, schemas.Event{RunID: m.id, Seq: 1 + int64(i)*(peakSeq-1),
				Action: int32(schemas.ActionSegmentAlloc), Size: size})
		}
		in.Reserved = schemas.DeriveReserved(in.Events, in.Report.Devices)
	}
	return in
}

func one(c ...schemas.Category) []schemas.Category { return c }

// methodRun returns a run of one of the headline methods. The run's categories have roughly the proportions of a real
// run.
func methodRun(id, method string) madeUp {
	m := madeUp{id: id, name: method, status: schemas.StatusOK, source: schemas.Measured, steps: 8, stepNS: 4052e6,
		params: map[string]any{"method": method, "batch_size": 1.0, "seq_len": 16384.0, "precision": "fp32"},
		blocks: []block{
			{4469.40625, one(schemas.Parameters), false},
			{8938.8134, one(schemas.OptimizerState), false},
			{32, one(schemas.Workspace), false},
			{0.25, one(schemas.Inputs), true},
			{2000.0003, one(schemas.Outputs), true},
			{4000, one(schemas.ForwardTemporaries), true},
			{2300.7, one(schemas.ActivationGradients), true},
		}}
	switch method {
	case "vanilla":
		m.blocks = append(m.blocks, block{34000.5, one(schemas.Activations), true},
			block{4469.40625, one(schemas.Gradients), true})
	case "dpsgd":
		m.stepNS = 4787e6
		m.blocks = append(m.blocks, block{10704.5, one(schemas.Activations), true},
			block{23296, one(schemas.Activations, schemas.HookActivations), true},
			block{4469.40625, one(schemas.Gradients), false}, block{4469.40625, one(schemas.PerSampleGradients,
				schemas.SummedGradients), true},
			block{0.0028, one(schemas.NormSamples), true})
	case "ghost":
		m.stepNS = 19032e6
		m.blocks = append(m.blocks, block{10704.5, one(schemas.Activations), true},
			block{23296, one(schemas.Activations, schemas.HookActivations), true},
			block{4469.40625, one(schemas.Gradients), false}, block{6144, one(schemas.ClipTemporaries), true},
			block{0.0028, one(schemas.NormSamples), true},
			block{1200, one(schemas.StoredBackprops), true}, block{20, one(schemas.HookActivations), true})
		m.blocks[5].mib = 800
	}
	return m
}

func summaries(runs ...madeUp) []analyze.Summary {
	var out []analyze.Summary
	for _, m := range runs {
		out = append(out, analyze.Summarize(m.input()))
	}
	return out
}

func headline() []madeUp {
	var runs []madeUp
	for i, method := range []string{"vanilla", "dpsgd", "ghost"} {
		runs = append(runs, methodRun(fmt.Sprintf("20261121T10150%dZ-%s-aaaaa%d", i, method, i), method))
	}
	return runs
}

func study(baseline int, runs ...madeUp) compare.Study {
	s := summaries(runs...)
	if baseline < 0 {
		return compare.NewStudy(s, nil)
	}
	return compare.NewStudy(s, &s[baseline])
}
