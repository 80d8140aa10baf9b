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
	// DefaultSampleInterval is the time between two NVML samples.
	DefaultSampleInterval = 10 * time.Millisecond
	hostInterval          = 500 * time.Millisecond
	// energyInterval is the shortest time between two readings of the energy. A reading takes milliseconds. energyShare
	// is the largest share of a core that such readings take.
	energyInterval = time.Second
	energyShare    = 0.0015
	// gaugeInterval is the shortest time between two readings of all values other than memory. Drivers refresh these at
	// most a few dozen times a second. Each reading wakes Go's scheduler, whose own thread then polls for ten
	// milliseconds.
	gaugeInterval = 100 * time.Millisecond
	// quietInterval replaces gaugeInterval as long as the memory in use has not changed since the start, so that no
	// process computes yet. When a process creates its CUDA context, the driver holds its lock for a tenth of a second
	// just before it takes any memory. Meanwhile a reading of memory sleeps, but a reading of another value spins (on
	// an H200 in 17 of 91 runs, when such values were read at any time).
	quietInterval = time.Second
	// sampleShare is the share of an interval that a device's readings may take before values other than memory are
	// read less often.
	sampleShare = 0.0015
	// flushShare is the fraction of the time since the start after which segments are flushed, within bounds. So a
	// short run loses little to a SIGKILL, and a long run does not leave thousands of files.
	flushShare    = 20
	flushShortest = 15 * time.Second
	flushLongest  = time.Minute
)

// samplers are the goroutines that sample a run from outside its processes.
type samplers struct {
	stop func()
	done sync.WaitGroup

	gpu  *gpuSampler // nil without NVML
	host *hostSampler
	errs chan error // receives the first error of a flush
}

// startSamplers begins sampling. tree has the run's processes.
func startSamplers(dir, runID string, devices []nvml.Device, interval time.Duration, tree *host.Tree,
	processes processTable) *samplers {
	ctx, cancel := context.WithCancel(context.Background())
	s := &samplers{stop: cancel, errs: make(chan error, 1)}
	s.host = &hostSampler{runID: runID, tree: tree, out: &segmentWriter[schemas.HostSample]{dir: dir,
		table: schemas.HostSamples}}
	s.done.Go(func() { s.host.run(ctx) })
	flush := []func() error{s.host.out.flush}
	if len(devices) > 0 {
		s.gpu = newGPUSampler(runID, devices, interval, processes, &segmentWriter[schemas.Sample]{dir: dir,
			table: schemas.Samples})
		s.done.Go(func() { s.gpu.run(ctx) })
		flush = append(flush, s.gpu.out.flush)
	}
	s.done.Go(func() { s.flush(ctx, flush) })
	return s
}

// flush writes segments until the context ends; the caller makes the last flush, after the samplers have stopped.
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

// close stops sampling and writes the remaining samples.
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

// processTable distinguishes the run's processes from others.
type processTable interface {
	// Ours reports whether a process belongs to the run.
	Ours(pid int) bool
}

// gpuSampler reads NVML on its own goroutine.
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

// deviceState is kept from one reading of a device to the next.
type deviceState struct {
	wait        int // ticks until values other than memory are read again
	gaugeCosts  costs
	energy      time.Time // when the energy is read next
	energyCosts costs
	others      int32 // other processes at the last reading
	begun       bool  // whether idle is known
	idle        int64 // memory in use at the first reading
	moved       bool  // whether the memory in use has changed since
}

// costs are the durations of the last readings of a kind. Their median counts. With their mean, one stall of a driver
// would stop such readings for a minute, which is most of a run.
type costs [3]time.Duration

func (c *costs) add(d time.Duration) time.Duration {
	c[0], c[1], c[2] = c[1], c[2], d
	return max(min(c[0], c[1]), min(max(c[0], c[1]), c[2]))
}

func newGPUSampler(runID string, devices []nvml.Device, interval time.Duration, processes processTable,
	out *segmentWriter[schemas.Sample]) *gpuSampler {
	g := &gpuSampler{runID: runID, devices: devices, interval: interval, processes: processes, out: out,
		state: make([]deviceState, len(devices))}
	g.used.Store(-1)
	return g
}

// run samples until the context ends, and once more then, since a run's last state matters.
func (g *gpuSampler) run(ctx context.Context) {
	watch := nvml.NewWatch(g.devices, g.interval)
	defer context.AfterFunc(ctx, watch.Stop)()
	begin := time.Now()
	for ticks := int64(0); ; {
		last := ctx.Err() != nil
		if last {
			for i := range g.state {
				g.state[i].wait, g.state[i].energy = 0, time.Time{}
			}
		}
		readings := watch.Read(g.ticks(gaugeInterval))
		n := len(readings) / len(g.devices)
		g.take(readings, n)
		ticks += int64(n)
		if last {
			g.missed = max(0, int64(time.Since(begin)/g.interval)+1-ticks)
			return
		}
	}
}

// ticks converts a duration to ticks, at least one. One call of Watch.Read reads the ticks of a gaugeInterval.
func (g *gpuSampler) ticks(d time.Duration) int {
	return max(1, int(d/g.interval))
}

// take makes rows from the memory readings of some ticks. The last row of each device also gets the device's other
// values.
func (g *gpuSampler) take(readings []nvml.Reading, ticks int) {
	var used int64
	for k, r := range readings {
		d, s := g.devices[k%len(g.devices)], &g.state[k%len(g.devices)]
		if !r.OK {
			continue // a failed reading is left out, not stored as zero
		}
		s.look(r.Used)
		row := schemas.Sample{RunID: g.runID, Device: int32(d.Info().Index), TimeNS: r.TimeNS,
			UsedBytes: r.Used, ReservedBytes: r.Reserved, FreeBytes: r.Free, MemoryAPI: r.API}
		if k >= len(readings)-len(g.devices) {
			used += r.Used
			g.others(d, s, &row, ticks)
		}
		row.OtherProcesses = s.others
		g.out.add(row)
		g.samples++
	}
	g.used.Store(used)
}

// look notes memory in use that was not in use at the start. Readings that were delayed until then are due at once.
func (s *deviceState) look(used int64) {
	switch {
	case !s.begun:
		s.begun, s.idle = true, used
	case !s.moved && used != s.idle:
		s.moved, s.wait, s.energy = true, 0, time.Time{}
	}
}

// others reads the values other than memory, each as often as the cost of reading it allows.
func (g *gpuSampler) others(d nvml.Device, s *deviceState, row *schemas.Sample, ticks int) {
	now := time.Now()
	if !now.Before(s.energy) {
		if e, ok := d.EnergyMJ(); ok {
			row.EnergyMJ = &e
		}
		took := time.Since(now)
		now = now.Add(took) // the milliseconds of the energy reading do not count for the next readings
		s.energy = now.Add(max(energyInterval, time.Duration(float64(s.energyCosts.add(took))/energyShare)))
	}
	if s.wait -= ticks; s.wait > 0 {
		return
	}
	gauges := d.Gauges()
	row.ProcessBytes, s.others = g.split(d)
	row.SMPercent, row.MemoryPercent, row.PowerMW, row.TemperatureC = gauges.SMPercent, gauges.MemoryPercent,
		gauges.PowerMW, gauges.TemperatureC
	row.SMClockMHz, row.MemoryClockMHz, row.ThrottleReasons = gauges.SMClockMHz, gauges.MemoryClockMHz,
		gauges.ThrottleReasons
	// A fake or idle driver answers at once. A busy driver, or one with many processes, may be slow.
	cost := s.gaugeCosts.add(time.Since(now))
	s.wait = max(g.ticks(gaugeInterval), 1+int(float64(cost)/(sampleShare*float64(g.interval))))
	if !s.moved {
		s.wait = max(s.wait, g.ticks(quietInterval))
	}
}

// split adds up the memory of the run's processes on a device, and counts other processes.
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
			h.out.add(schemas.HostSample{RunID: h.runID, TimeNS: now.UnixNano(), RSSBytes: u.RSSBytes, CPUNS: u.CPUNS,
				Processes: int32(u.Processes)})
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
