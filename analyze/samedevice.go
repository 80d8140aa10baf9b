package analyze

import (
	"fmt"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// peaksOfShared counts what processes that had one device at once had reserved of it together, which is what has to
// fit: of a predicted run as it was; of a measured one, whose processes have counters of their own only, as the sum of
// the most that each had.
func (s *Summary) peaksOfShared(in *Input) {
	bytes, processes, how := int64(0), 0, "the most that they had together"
	if u := sharedDevice(in.Manifest); u != nil {
		bytes, processes = u.ReservedBytes, u.Processes
	} else if in.Manifest.Source == schemas.Measured {
		bytes, processes = in.reservedBeside()
		how = "the sum of the most that each had"
	}
	if s.PeakReservedBytes == nil {
		return
	}
	if processes < 2 {
		if in.Manifest.Source == schemas.Measured && s.devicesUsed > in.gpusOf(s.devicesUsed) { // one after the other
			s.Warnings = append(s.Warnings, fmt.Sprintf("memory is that of the fullest of %d processes, which had a "+
				"device one after the other", s.devicesUsed))
		}
		return
	}
	s.reservedAlone = s.PeakReservedBytes
	s.PeakReservedBytes = new(max(*s.PeakReservedBytes, bytes))
	s.Warnings = append(s.Warnings, fmt.Sprintf("%s had memory of one device at once: what is reserved is %s, the "+
		"peak is that of the fullest process, and a breakdown is of one process alone",
		plural(processes, "process", "processes"), how))
}

// gpusOf is how many GPUs a run's devices are, where each is known; else each counts for itself.
func (in *Input) gpusOf(devices int) int {
	uuids := map[string]bool{}
	for i := range in.Report.Devices {
		v := &in.Report.Devices[i]
		if higher(v.Events, &v.PeakAllocatedBytes, v.TorchPeakAllocatedBytes) == nil {
			continue
		}
		at := slices.IndexFunc(in.Processes, func(p schemas.Process) bool {
			return p.Rank == v.Rank && p.Device == v.Device && p.UUID != ""
		})
		if at < 0 {
			return devices
		}
		uuids[in.Processes[at].UUID] = true
	}
	return len(uuids)
}

// reservedBeside is the highest sum of the peaks reserved of processes that had one GPU at the same time, and how many
// these were. A peak may have passed when another process reached its own: torch keeps what it has reserved until
// empty_cache, or a request that would fail.
func (in *Input) reservedBeside() (bytes int64, processes int) {
	if in.Report == nil {
		return 0, 0
	}
	peaks := map[[2]int32]int64{}
	for i := range in.Report.Devices {
		v := &in.Report.Devices[i]
		if r := higher(v.Events, &v.PeakReservedBytes, v.TorchPeakReservedBytes); r != nil && *r > 0 {
			peaks[[2]int32{v.Rank, v.Device}] = *r
		}
	}
	alive := func(p *schemas.Process, at int64) bool { return p.StartNS <= at && (p.EndNS == 0 || at <= p.EndNS) }
	for i := range in.Processes {
		last := &in.Processes[i] // to start, of those that are alive together
		sum, n := int64(0), 0
		for j := range in.Processes {
			p := &in.Processes[j]
			if peak := peaks[[2]int32{p.Rank, p.Device}]; peak > 0 && p.UUID != "" && p.UUID == last.UUID &&
				alive(p, last.StartNS) {
				sum, n = sum+peak, n+1
			}
		}
		if n > 1 && sum > bytes {
			bytes, processes = sum, n
		}
	}
	return bytes, processes
}

// sharedDevice is the fullest of the devices that several processes of a predicted run had memory of at once, nil
// without one.
func sharedDevice(m *schemas.Manifest) (fullest *schemas.DeviceUse) {
	if m.Phantom == nil {
		return nil
	}
	for i := range m.Phantom.Devices {
		if u := &m.Phantom.Devices[i]; u.Processes > 1 && (fullest == nil || u.ReservedBytes > fullest.ReservedBytes) {
			fullest = u
		}
	}
	return fullest
}

// sharedAs is what several processes had together of the device that they have under one of torch's ordinals, nil where
// no more than one had memory of it at once. It is not known where an ordinal need not be the device's place in the
// machine: where a device was used whose place is no rank's ordinal, the ranks have a CUDA_VISIBLE_DEVICES of their
// own.
func sharedAs(m *schemas.Manifest, r *schemas.IngestReport, ordinal int32) (use *schemas.DeviceUse, known bool) {
	if m.Phantom == nil {
		return nil, true
	}
	uses := m.Phantom.Devices
	found := 0
	for i := range uses {
		u := &uses[i]
		if len(uses) > 1 && !slices.ContainsFunc(r.Devices, func(v schemas.DeviceVerdict) bool {
			return int(v.Device) == u.Device
		}) {
			return nil, false
		}
		if len(uses) > 1 && u.Device != int(ordinal) {
			continue
		}
		if found++; u.Processes > 1 {
			use = u
		}
	}
	if found > 1 { // in machines of their own
		return nil, false
	}
	return use, true
}

// spareWith is what is left of the memory by what the processes of shared devices had of it together.
func spareWith(spare, memory int64, uses []schemas.DeviceUse) int64 {
	for i := range uses {
		if u := &uses[i]; u.Processes > 1 {
			spare = min(spare, memory-u.TakenBytes)
		}
	}
	return spare
}
