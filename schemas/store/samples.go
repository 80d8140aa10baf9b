package store

import "github.com/dpsight/dpsight/schemas"

// samples reads NVML's samples, without the run id. A run has a hundred samples per second and device. Reading the
// samples by rows would take as long as reading all blocks of the run.
func samples(dir string) ([]schemas.Sample, error) {
	type row = schemas.Sample
	rows, err := readColumns(dir, schemas.Samples, []column[row]{
		{name: "rank", int: func(s *row, v int64) { s.Rank = int32(v) }},
		{name: "device", int: func(s *row, v int64) { s.Device = int32(v) }},
		{name: "time_ns", int: func(s *row, v int64) { s.TimeNS = v }},
		{name: "used_bytes", int: func(s *row, v int64) { s.UsedBytes = v }},
		{name: "reserved_bytes", int: func(s *row, v int64) { s.ReservedBytes = v }},
		{name: "free_bytes", int: func(s *row, v int64) { s.FreeBytes = v }},
		{name: "memory_api", int: func(s *row, v int64) { s.MemoryAPI = int32(v) }},
		{name: "process_bytes", int: func(s *row, v int64) { s.ProcessBytes = new(v) }},
		{name: "other_processes", int: func(s *row, v int64) { s.OtherProcesses = int32(v) }},
		{name: "sm_percent", int: func(s *row, v int64) { s.SMPercent = new(int32(v)) }},
		{name: "memory_percent", int: func(s *row, v int64) { s.MemoryPercent = new(int32(v)) }},
		{name: "power_mw", int: func(s *row, v int64) { s.PowerMW = new(v) }},
		{name: "energy_mj", int: func(s *row, v int64) { s.EnergyMJ = new(v) }},
		{name: "temperature_c", int: func(s *row, v int64) { s.TemperatureC = new(int32(v)) }},
		{name: "sm_clock_mhz", int: func(s *row, v int64) { s.SMClockMHz = new(int32(v)) }},
		{name: "memory_clock_mhz", int: func(s *row, v int64) { s.MemoryClockMHz = new(int32(v)) }},
		{name: "throttle_reasons", int: func(s *row, v int64) { s.ThrottleReasons = new(v) }},
	}, nil)
	return rows, optional(err, false)
}
