package collect

import "time"

// A cpuMeter divides this process's CPU time into parts, one for each stage of a run.
type cpuMeter struct{ last time.Duration }

func newCPUMeter() cpuMeter { return cpuMeter{processCPU()} }

// part returns the CPU time since the previous call, in nanoseconds.
func (c *cpuMeter) part() int64 {
	now := processCPU()
	part := now - c.last
	c.last = now
	return int64(part)
}
