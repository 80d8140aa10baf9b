package collect

import "time"

// A cpuMeter splits this process's CPU time into the parts of a run.
type cpuMeter struct{ last time.Duration }

func newCPUMeter() cpuMeter { return cpuMeter{processCPU()} }

// part is the CPU time since the part before it, in nanoseconds.
func (c *cpuMeter) part() int64 {
	now := processCPU()
	part := now - c.last
	c.last = now
	return int64(part)
}
