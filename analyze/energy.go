package analyze

import "github.com/dpsight/dpsight/schemas"

// energy divides the energy of the timed steps by their number and by their samples (nil where a step reported none). The
// counter is read about once a second, so it is interpolated at the ends of each unbroken series of timed steps; a series
// shorter than minEnergyNS, or not enclosed by readings, gives nil: no energy is better than an invented one. Several GPUs
// add up.
func (in *Input) energy(t *times) (perStep, perSample *float64) {
	const minEnergyNS = 5e9
	type reading struct{ ns, mj int64 }
	byDevice := map[int32][]reading{}
	for i := range in.Samples {
		if s := &in.Samples[i]; s.EnergyMJ != nil {
			byDevice[s.Device] = append(byDevice[s.Device], reading{s.TimeNS, *s.EnergyMJ})
		}
	}
	devices := in.nvmlDevices()
	if len(devices) == 0 || len(t.steps) == 0 {
		return nil, nil
	}
	at := func(r []reading, ns int64) (float64, bool) {
		for i := 1; i < len(r); i++ {
			if a, b := r[i-1], r[i]; a.ns <= ns && ns <= b.ns && a.ns < b.ns {
				return float64(a.mj) + float64(b.mj-a.mj)*float64(ns-a.ns)/float64(b.ns-a.ns), true
			}
		}
		return 0, false
	}
	var millijoules float64
	var samples int64
	counted := true
	for i := 0; i < len(t.steps); {
		j := i
		for j+1 < len(t.steps) && t.steps[j+1].step == t.steps[j].step+1 {
			j++
		}
		from, to := t.steps[i].startNS, t.steps[j].endNS
		if to-from < minEnergyNS {
			return nil, nil
		}
		for _, d := range devices {
			a, okA := at(byDevice[d], from)
			b, okB := at(byDevice[d], to)
			if !okA || !okB || b < a {
				return nil, nil
			}
			millijoules += b - a
		}
		for ; i <= j; i++ {
			counted = counted && t.steps[i].samples > 0
			samples += t.steps[i].samples
		}
	}
	joules := millijoules / 1e3
	step := joules / float64(len(t.steps))
	if counted {
		sample := joules / float64(samples)
		perSample = &sample
	}
	return &step, perSample
}

// nvmlDevices lists the NVML indices of the GPUs that the run used: the only one that it could see, else by UUID where
// processes and manifest have them, else the only one sampled; none where that cannot be told. A process's device is
// torch's ordinal and not NVML's index: with CUDA_VISIBLE_DEVICES=3, cuda:0 is index 3.
func (in *Input) nvmlDevices() []int32 {
	sampled := map[int32]bool{}
	for i := range in.Samples {
		sampled[in.Samples[i].Device] = true
	}
	if g := in.Manifest.GPUs; len(g) == 1 && sampled[int32(g[0].Index)] {
		return []int32{int32(g[0].Index)}
	}
	used := map[int32]bool{}
	for i := range in.Processes {
		for _, g := range in.Manifest.GPUs {
			if u := in.Processes[i].UUID; u != "" && u == g.UUID && sampled[int32(g.Index)] {
				used[int32(g.Index)] = true
			}
		}
	}
	if len(used) == 0 && len(sampled) == 1 {
		used = sampled
	}
	var list []int32
	for d := range used {
		list = append(list, d)
	}
	return list
}

// peakDevice is the highest memory in use that NVML saw on any GPU of the run, nil where it was not sampled.
func (in *Input) peakDevice() *int64 {
	if in.Manifest.Source != schemas.Measured {
		return nil
	}
	var highest *int64
	for _, d := range in.nvmlDevices() {
		for i := range in.Samples {
			if s := &in.Samples[i]; s.Device == d && (highest == nil || s.UsedBytes > *highest) {
				highest = new(s.UsedBytes) // a pointer into the samples would keep them all
			}
		}
	}
	return highest
}
