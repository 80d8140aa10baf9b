package collect

import (
	"cmp"
	"testing"
	"time"

	"github.com/dpsight/dpsight/collect/nvml"
	"github.com/dpsight/dpsight/schemas"
)

// --sample-interval is the time between two readings of the memory. The gauges are still read every 100 ms, or at each
// sample if samples are rarer.
func TestSampleInterval(t *testing.T) {
	for _, test := range []struct {
		interval time.Duration
		rows     int // samples of a bit more than a second
		full     int // samples with gauges
	}{
		{5 * time.Millisecond, 203, 11},
		{10 * time.Millisecond, 103, 11},
		{50 * time.Millisecond, 23, 12},
		{200 * time.Millisecond, 8, 8},
	} {
		gpu := newFakeGPU()
		gpu.quiet = 1
		_, rows := sample(t, gpu, test.interval, time.Second+time.Millisecond)
		full := 0
		for i, r := range rows {
			if r.SMPercent != nil {
				full++
			}
			if i > 0 && i < len(rows)-1 && r.TimeNS-rows[i-1].TimeNS != int64(test.interval) {
				t.Errorf("%s: row %d comes %d ns after the one before", test.interval, i, r.TimeNS-rows[i-1].TimeNS)
			}
		}
		if len(rows) != test.rows || full != test.full {
			t.Errorf("%s: %d rows, %d of them full; want %d, %d", test.interval, len(rows), full, test.rows, test.full)
		}
	}
}

// The collector samples at the interval that an experiment asks for, and writes it to the manifest.
func TestExperimentSampleInterval(t *testing.T) {
	ticks := map[time.Duration]float64{}
	for _, interval := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond} {
		e := experiment(t, "sleep 1")
		e.SampleInterval = interval
		r := run(t, e)
		c := r.Manifest.Collector
		if want := cmp.Or(interval, DefaultSampleInterval); c.SampleIntervalNS != int64(want) {
			t.Errorf("%s: the manifest says %d ns", interval, c.SampleIntervalNS)
		}
		rows, err := schemas.Samples.Read(r.Dir)
		if err != nil || int64(len(rows)) != c.Samples {
			t.Errorf("%s: %d rows, %d samples, %v", interval, len(rows), c.Samples, err)
		}
		if len(rows) < 2 {
			t.Fatalf("%s: %d samples", interval, len(rows))
		}
		// A busy machine misses ticks of the sampler, which counts them. So samples and missed ticks together show the
		// interval.
		lasted := time.Duration(rows[len(rows)-1].TimeNS - rows[0].TimeNS)
		ticks[interval] = float64(c.Samples+c.MissedTicks-1) / lasted.Seconds()
	}
	if ticks[5*time.Millisecond] < 5*ticks[50*time.Millisecond] || ticks[0] < 2.5*ticks[50*time.Millisecond] {
		t.Errorf("ticks a second, by interval: %v", ticks)
	}
}

// countingGPU is a fakeGPU that counts the calls of NVML, by kind.
type countingGPU struct {
	*fakeGPU
	memory, gauges, processes int
}

func (c *countingGPU) Memory() (nvml.Memory, error) { c.memory++; return c.fakeGPU.Memory() }
func (c *countingGPU) Gauges() nvml.Gauges          { c.gauges++; return c.fakeGPU.Gauges() }
func (c *countingGPU) Processes() ([]nvml.Process, error) {
	c.processes++
	return c.fakeGPU.Processes()
}

// The sampler makes only as many calls of NVML as its intervals require. With the time that each call took on an H200,
// the number of calls bounds the collector's share of a core, also if this machine is busy.
func TestSamplerAsksLittle(t *testing.T) {
	const seconds = 60
	gpu := &countingGPU{fakeGPU: newFakeGPU()}
	gpu.quiet = 1
	sample(t, gpu, DefaultSampleInterval, seconds*time.Second)
	for what, n := range map[string][2]int{
		"memory":    {gpu.memory, 100 * seconds},
		"gauges":    {gpu.gauges, 10 * seconds},
		"processes": {gpu.processes, 10 * seconds},
		"energy":    {gpu.energies, seconds},
	} {
		if n[0] > n[1]+6 || n[0] < n[1]-2 {
			t.Errorf("%s was asked for %d times in %d s, want %d", what, n[0], seconds, n[1])
		}
	}
	cost := time.Duration(gpu.memory)*4*time.Microsecond + time.Duration(gpu.gauges)*24*time.Microsecond +
		time.Duration(gpu.energies)*2600*time.Microsecond
	if share := cost.Seconds() / seconds; share > 0.005 {
		t.Errorf("NVML's answers take %.2f %% of a core", 100*share)
	}
}
