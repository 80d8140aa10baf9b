package collect

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpsight/dpsight/collect/host"
	"github.com/dpsight/dpsight/collect/nvml"
	"github.com/dpsight/dpsight/schemas"
)

const (
	// DefaultSampleInterval is the time between two NVML readings.
	DefaultSampleInterval = 10 * time.Millisecond
	hostInterval          = 500 * time.Millisecond
	// energyInterval is the least time between two readings of the energy, which take milliseconds each; energyShare bounds what
	// they take of a core.
	energyInterval = time.Second
	energyShare    = 0.0035
	// gaugeInterval is the least time between two readings of all but memory: drivers refresh them a few dozen times a second at most.
	gaugeInterval = 50 * time.Millisecond
	// sampleShare is the part of an interval that a device's readings may take before all but memory are taken less often.
	sampleShare = 0.003
	// Segments are flushed every flushShare of the time since the start, within bounds: a short run loses
	// little to a SIGKILL, and a long one does not leave thousands of files.
	flushShare    = 20
	flushShortest = 15 * time.Second
	flushLongest  = time.Minute
)

// samplers are the goroutines that record a run from outside.
type samplers struct {
	stop func()
	done sync.WaitGroup

	gpu  *gpuSampler // nil without NVML
	host *hostSampler
	errs chan error // first error of a flush
}

// startSamplers begins to sample. tree has the run's processes.
func startSamplers(dir, runID string, devices []nvml.Device, interval time.Duration, tree *host.Tree, processes processTable) *samplers {
	ctx, cancel := context.WithCancel(context.Background())
	s := &samplers{stop: cancel, errs: make(chan error, 1)}
	s.host = &hostSampler{runID: runID, tree: tree, out: &segmentWriter[schemas.HostSample]{dir: dir, table: schemas.HostSamples}}
	s.done.Go(func() { s.host.run(ctx) })
	flush := []func() error{s.host.out.flush}
	if len(devices) > 0 {
		s.gpu = newGPUSampler(runID, devices, interval, processes, &segmentWriter[schemas.Sample]{dir: dir, table: schemas.Samples})
		s.done.Go(func() { s.gpu.run(ctx) })
		flush = append(flush, s.gpu.out.flush)
	}
	s.done.Go(func() { s.flush(ctx, flush) })
	return s
}

// flush writes segments until the context ends; the last one is the caller's, after the samplers.
func (s *samplers) flush(ctx context.Context, tables []func() error) {
	for begin := time.Now(); ; {
		wait := min(max(time.Since(begin)/flushShare, flushShortest), flushLongest)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		for _, f := range tables {
			s.note(f())
		}
	}
}

func (s *samplers) note(err error) {
	if err != nil {
		select {
		case s.errs <- err:
		default:
		}
	}
}

// close stops sampling and writes what is left.
func (s *samplers) close() error {
	s.stop()
	s.done.Wait()
	s.note(s.host.out.flush())
	if s.gpu != nil {
		s.note(s.gpu.out.flush())
	}
	select {
	case err := <-s.errs:
		return err
	default:
		return nil
	}
}

// processTable tells the run's processes from others.
type processTable interface {
	// Ours reports whether a process belongs to the run.
	Ours(pid int) bool
}

// gpuSampler reads NVML on a goroutine of its own.
type gpuSampler struct {
	runID     string
	devices   []nvml.Device
	interval  time.Duration
	processes processTable
	out       *segmentWriter[schemas.Sample]

	samples, missed int64 // valid once run has returned
	used            atomic.Int64
	state           []deviceState
}

// deviceState is what is carried from one reading of a device to the next.
type deviceState struct {
	every  int // readings of all but memory are taken each so many ticks
	cost   time.Duration
	energy time.Time // of the next reading
	gauges nvml.Gauges
	ours   *int64
	others int32
}

func newGPUSampler(runID string, devices []nvml.Device, interval time.Duration, processes processTable, out *segmentWriter[schemas.Sample]) *gpuSampler {
	g := &gpuSampler{runID: runID, devices: devices, interval: interval, processes: processes, out: out, state: make([]deviceState, len(devices))}
	for i := range g.state {
		g.state[i].every = g.gaugeTicks()
	}
	g.used.Store(-1)
	return g
}

// run samples until the context ends, once more at its end: what a run used last is of interest.
func (g *gpuSampler) run(ctx context.Context) {
	ticker := time.NewTicker(g.interval)
	defer ticker.Stop()
	begin := time.Now()
	ticks := int64(0)
	for {
		g.tick(ticks)
		ticks++
		select {
		case <-ctx.Done():
			g.tick(0)
			// The ticker drops ticks that nobody waited for.
			g.missed = max(0, int64(time.Since(begin)/g.interval)-ticks)
			return
		case <-ticker.C:
		}
	}
}

// gaugeTicks is gaugeInterval in ticks.
func (g *gpuSampler) gaugeTicks() int {
	return max(1, int(gaugeInterval/g.interval))
}

func (g *gpuSampler) tick(n int64) {
	var used int64
	for i, d := range g.devices {
		row, ok := g.read(d, &g.state[i], n)
		if !ok {
			continue // a reading that failed is absent, not zero
		}
		used += row.UsedBytes
		g.out.add(row)
		g.samples++
	}
	g.used.Store(used)
}

func (g *gpuSampler) read(d nvml.Device, s *deviceState, n int64) (schemas.Sample, bool) {
	now := time.Now()
	mem, err := d.Memory()
	if err != nil {
		return schemas.Sample{}, false
	}
	row := schemas.Sample{RunID: g.runID, Device: int32(d.Info().Index), TimeNS: now.UnixNano(),
		UsedBytes: mem.Used, ReservedBytes: mem.Reserved, FreeBytes: mem.Free, MemoryAPI: mem.API}
	if !now.Before(s.energy) {
		if e, ok := d.EnergyMJ(); ok {
			row.EnergyMJ = &e
		}
		took := time.Since(now)
		s.energy = now.Add(max(energyInterval, time.Duration(float64(took)/energyShare)))
		now = now.Add(took) // its milliseconds are not the readings' below
	}
	if n%int64(s.every) == 0 {
		s.gauges = d.Gauges()
		s.ours, s.others = g.split(d)
		// A fake or idle driver answers in no time; a busy one, or one with many processes, may not.
		s.cost = (3*s.cost + time.Since(now)) / 4
		s.every = max(g.gaugeTicks(), 1+int(float64(s.cost)/(sampleShare*float64(g.interval))))
		row.SMPercent, row.MemoryPercent, row.PowerMW, row.TemperatureC = s.gauges.SMPercent, s.gauges.MemoryPercent, s.gauges.PowerMW, s.gauges.TemperatureC
		row.SMClockMHz, row.MemoryClockMHz, row.ThrottleReasons = s.gauges.SMClockMHz, s.gauges.MemoryClockMHz, s.gauges.ThrottleReasons
		row.ProcessBytes = s.ours
	}
	row.OtherProcesses = s.others
	return row, true
}

// split sums the memory of the run's processes on a device and counts the others.
func (g *gpuSampler) split(d nvml.Device) (ours *int64, others int32) {
	list, err := d.Processes()
	if err != nil {
		return nil, 0
	}
	var sum int64
	known := true
	for _, p := range list {
		switch {
		case !g.processes.Ours(p.PID):
			others++
		case p.Bytes == nil:
			known = false
		default:
			sum += *p.Bytes
		}
	}
	if !known {
		return nil, others
	}
	return &sum, others
}

// hostSampler measures the process tree.
type hostSampler struct {
	runID string
	tree  *host.Tree
	out   *segmentWriter[schemas.HostSample]
}

func (h *hostSampler) run(ctx context.Context) {
	ticker := time.NewTicker(hostInterval)
	defer ticker.Stop()
	for {
		now := time.Now()
		if u := h.tree.Read(now); u.Processes > 0 {
			h.out.add(schemas.HostSample{RunID: h.runID, TimeNS: now.UnixNano(), RSSBytes: u.RSSBytes, CPUNS: u.CPUNS, Processes: int32(u.Processes)})
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
