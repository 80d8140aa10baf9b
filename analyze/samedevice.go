package analyze

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/schemas"
)

// peaksOfShared sets the peak reserved of processes that share one device to the bytes that they reserve together,
// since the device has to hold their sum. For a predicted run, it takes the highest sum at any moment. For measured
// processes only each process's maximum is known, so it takes the sum of the maxima.
func (s *Summary) peaksOfShared(in *schemas.Tables) {
	bytes, processes, remark := int64(0), 0, RemarkTogether
	if u := confidence.SharedDevice(in.Manifest); u != nil {
		bytes, processes = u.ReservedBytes, u.Processes
	} else if in.Manifest.Source == schemas.Measured {
		bytes, processes = reservedBeside(in)
		remark = RemarkSumReserved
	}
	if s.PeakReservedBytes == nil {
		return
	}
	if processes < 2 {
		if in.Manifest.Source == schemas.Measured && s.devicesUsed > gpusOf(in, s.devicesUsed) { // in turn on one GPU
			s.Remarks = append(s.Remarks, Remark{Kind: RemarkInTurn, N: s.devicesUsed})
		}
		return
	}
	s.ReservedAlone = s.PeakReservedBytes
	s.PeakReservedBytes = new(max(*s.PeakReservedBytes, bytes))
	s.Remarks = append(s.Remarks, Remark{Kind: remark, N: processes})
}

// gpusOf returns the number of GPUs on which a run's devices lie, if the GPU of each device is known. Otherwise each
// device counts as a separate GPU.
func gpusOf(in *schemas.Tables, devices int) int {
	uuids := map[string]bool{}
	for i := range in.Report.Devices {
		v := &in.Report.Devices[i]
		if identity.Higher(v.Events, &v.PeakAllocatedBytes, v.TorchPeakAllocatedBytes) == nil {
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

// reservedBeside returns the highest sum of the peaks reserved of processes that used the same GPU at the same time,
// and the number of these processes. The processes may reach their peaks at different times. The sum still counts,
// since torch keeps what it has reserved until empty_cache, or until a request would fail.
func reservedBeside(in *schemas.Tables) (bytes int64, processes int) {
	if in.Report == nil {
		return 0, 0
	}
	peaks := map[[2]int32]int64{}
	for i := range in.Report.Devices {
		v := &in.Report.Devices[i]
		if r := identity.Higher(v.Events, &v.PeakReservedBytes, v.TorchPeakReservedBytes); r != nil && *r > 0 {
			peaks[[2]int32{v.Rank, v.Device}] = *r
		}
	}
	alive := func(p *schemas.Process, at int64) bool { return p.StartNS <= at && (p.EndNS == 0 || at <= p.EndNS) }
	for i := range in.Processes {
		last := &in.Processes[i] // of processes that are alive together, the last to start
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

// SpareWith returns the spare memory of a run after subtracting what the processes that share a device reserve
// together.
func SpareWith(spare, memory int64, uses []schemas.DeviceUse) int64 {
	for i := range uses {
		if u := &uses[i]; u.Processes > 1 {
			spare = min(spare, memory-u.TakenBytes)
		}
	}
	return spare
}
