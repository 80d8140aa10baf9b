package live

import (
	"encoding/json"
	"slices"

	"github.com/dpsight/dpsight/ingest"
	"github.com/dpsight/dpsight/report/page"
	"github.com/dpsight/dpsight/schemas/spool"
)

// mostSteps limits how many of the latest steps a process keeps. When it has so many, it drops the older half.
const mostSteps = 2048

// A process follows the journal of one recorded process.
type process struct {
	journal *spool.Follower
	info    spool.ProcessInfo
	count   spool.StepCount
	names   map[uint32]string
	replay  *ingest.Growing
	pickle  *spool.Chunk // events of a drain whose counters the agent has not written yet
	devices []*device
	state   page.LiveProcess
	plan    spool.PlanInfo
	open    []string // phases that are open at the last mark
}

// device is the present state of one device that a process uses.
type device struct {
	page.LiveDevice
	line line
}

func follow(path string) *process {
	return &process{journal: spool.Follow(path), names: map[uint32]string{}, replay: ingest.NewGrowing()}
}

// read reads what the agent has written to the journal since the last call.
func (p *process) read() error {
	if err := p.journal.Marks(p.mark); err != nil {
		return err
	}
	p.state.Steps = p.count.Steps()
	var wrong error
	err := p.journal.Frames(func(f spool.Frame) {
		if e := p.frame(f); e != nil && wrong == nil {
			wrong = e
		}
	})
	if err == nil {
		err = wrong
	}
	return err
}

// words has the name of the phase that a mark opens. The mark of the next kind closes this phase.
var words = map[spool.Kind]string{spool.ForwardBegin: "forward", spool.BackwardBegin: "backward",
	spool.OptimizerBegin: "optimizer", spool.DPStepBegin: "optimizer", spool.ZeroGradBegin: "zero_grad",
	spool.RecomputeBegin: "recompute", spool.DrainBegin: "drain"}

func (p *process) mark(m spool.Mark) {
	p.state.MarkNS = max(p.state.MarkNS, m.TimeNS)
	switch {
	case m.Kind == spool.Mode:
		p.state.Recording = m.Flags&spool.FlagRecording != 0
	case m.Kind == spool.PhaseBegin:
		p.open = append(p.open, p.names[uint32(m.A)])
	case m.Kind == spool.OOM:
		p.state.FailedBytes, p.state.FailedStep = int64(m.A), p.count.Steps()
	case words[m.Kind] != "":
		p.open = append(p.open, words[m.Kind])
	case m.Kind == spool.PhaseEnd || m.Kind.Closes() && words[m.Kind-1] != "":
		if n := len(p.open); n > 0 {
			p.open = p.open[:n-1]
		}
	}
	if p.count.Add(m) {
		p.open = p.open[:0]
		p.stepEnded(m.TimeNS)
	}
	p.state.Phase = ""
	if n := len(p.open); n > 0 {
		p.state.Phase = p.open[n-1]
	}
}

func (p *process) stepEnded(ns int64) {
	s := page.LiveStep{Step: p.count.Steps() - 1, EndNS: ns, Recorded: p.state.Recording}
	if n := len(p.state.Times); n > 0 {
		s.WallNS = ns - p.state.Times[n-1].EndNS
		p.state.LastNS = s.WallNS
	}
	if len(p.state.Times) >= mostSteps {
		p.state.Times = append(p.state.Times[:0], p.state.Times[mostSteps/2:]...)
	}
	p.state.Times = append(p.state.Times, s)
}

func (p *process) frame(f spool.Frame) error {
	switch f.Type {
	case spool.FrameProcess:
		return json.Unmarshal(f.Payload, &p.info)
	case spool.FrameNames:
		return spool.Names(f.Payload, p.names)
	case spool.FramePlan:
		return json.Unmarshal(f.Payload, &p.plan)
	case spool.FrameAllocator:
		p.pickle = &spool.Chunk{Pickle: f.Payload, Offset: f.Offset}
	case spool.FrameCheckpoint:
		chunk := spool.Chunk{Offset: f.Offset}
		if p.pickle != nil {
			chunk, p.pickle = *p.pickle, nil
		}
		chunk.Checkpoint = &spool.Checkpoint{}
		if err := json.Unmarshal(f.Payload, chunk.Checkpoint); err != nil {
			return err
		}
		return p.drain(&chunk)
	}
	return nil
}

// drain adds the events of one drain, and torch's counters after these events.
func (p *process) drain(c *spool.Chunk) error {
	p.state.Drains, p.state.DrainNS = c.Checkpoint.Drain, c.Checkpoint.TimeNS
	p.state.DrainSpent += c.Checkpoint.DrainNS
	if c.Checkpoint.Drain == 0 {
		p.replay.Begin(c.Checkpoint)
	}
	err := p.replay.Add(c, func(l ingest.Level) {
		p.state.Events++
		p.device(l.Device).add(page.LivePoint{FromNS: l.TimeNS, TimeNS: l.TimeNS, ToNS: l.TimeNS,
			Step: p.stepAt(l.TimeNS), Allocated: l.Allocated, Reserved: l.Reserved, Low: l.Allocated})
	})
	for i := range c.Checkpoint.Devices {
		s := c.Checkpoint.Devices[i].Stats
		d := p.device(c.Checkpoint.Devices[i].Device)
		step := p.stepAt(c.Checkpoint.TimeNS)
		d.Allocated, d.Reserved = s["allocated_bytes.all.current"], s["reserved_bytes.all.current"]
		if peak := s["allocated_bytes.all.peak"]; peak > d.PeakAllocated {
			d.PeakAllocated, d.PeakStep = peak, step
		}
		d.PeakReserved = max(d.PeakReserved, s["reserved_bytes.all.peak"])
		if !c.Checkpoint.Recording || c.Pickle == nil || err != nil {
			from := c.Checkpoint.TimeNS
			if n := len(d.line.points); n > 0 {
				from = d.line.points[n-1].ToNS
			}
			d.add(page.LivePoint{FromNS: from, TimeNS: c.Checkpoint.TimeNS, ToNS: c.Checkpoint.TimeNS, Step: step,
				Allocated: d.Allocated, Reserved: d.Reserved, Low: d.Allocated, Counters: true})
		}
	}
	return err
}

func (d *device) add(q page.LivePoint) {
	if q.Allocated > d.PeakAllocated {
		d.PeakAllocated, d.PeakStep = q.Allocated, q.Step
	}
	d.PeakReserved = max(d.PeakReserved, q.Reserved)
	d.Allocated, d.Reserved = q.Allocated, q.Reserved
	d.line.add(q)
}

func (p *process) device(n int32) *device {
	i, found := slices.BinarySearchFunc(p.devices, n, func(d *device, n int32) int { return int(d.Device) - int(n) })
	if !found {
		d := &device{LiveDevice: page.LiveDevice{Device: n, PeakStep: -1}}
		p.devices = slices.Insert(p.devices, i, d)
	}
	return p.devices[i]
}

// stepAt returns the step in which a time lies. A step's number is the number of steps that ended before the time.
func (p *process) stepAt(ns int64) int64 {
	times := p.state.Times
	i, _ := slices.BinarySearchFunc(times, ns, func(s page.LiveStep, ns int64) int {
		if s.EndNS < ns {
			return -1
		}
		return 1
	})
	if i == 0 {
		if len(times) > 0 {
			return times[0].Step
		}
		return 0
	}
	return times[i-1].Step + 1
}

// planned returns the number of steps that the script announced. In a run that is not bare, an instrumented step
// accompanies each timed step.
func (p *process) planned(bare bool) int64 {
	if bare {
		return p.plan.Warmup + p.plan.Timed
	}
	return p.plan.Warmup + 2*p.plan.Timed
}

// now returns a copy of the process's present state.
func (p *process) now() page.LiveProcess {
	out := p.state
	out.PID = p.info.PID
	out.Times = slices.Clone(p.state.Times)
	if p.info.Rank != nil {
		out.Rank = *p.info.Rank
	}
	out.MedianNS = median(out.Times)
	for _, d := range p.devices {
		one := d.LiveDevice
		one.Points = slices.Clone(d.line.points)
		out.Devices = append(out.Devices, one)
	}
	return out
}

func median(steps []page.LiveStep) int64 {
	var walls []int64
	for _, s := range steps {
		if s.WallNS > 0 {
			walls = append(walls, s.WallNS)
		}
	}
	if len(walls) == 0 {
		return 0
	}
	slices.Sort(walls)
	return walls[len(walls)/2]
}
