package timing

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dpsight/dpsight/schemas"
)

// Energy divides the energy of the timed steps by the number of steps, and by the number of samples (nil if a step
// reported none). Energy returns nil and a reason if an unbroken series of timed steps is shorter than
// LeastEnergySeconds, or if the counter's readings do not cover it. The energy of several GPUs is summed.
func Energy(in *schemas.Tables, t *Times) (perStep, perSample *float64, why NoEnergy) {
	meters := map[int32]*energyMeter{}
	for i := range in.Samples {
		s := &in.Samples[i]
		if meters[s.Device] == nil {
			meters[s.Device] = &energyMeter{}
		}
		meters[s.Device].add(s)
	}
	devices := nvmlDevices(in)
	if len(devices) == 0 || len(t.Steps) == 0 {
		return nil, nil, ""
	}
	var millijoules float64
	var samples int64
	counted := true
	for i := 0; i < len(t.Steps); {
		j := i
		for j+1 < len(t.Steps) && t.Steps[j+1].step == t.Steps[j].step+1 {
			j++
		}
		from, to := t.Steps[i].startNS, t.Steps[j].endNS
		for _, d := range devices {
			if len(meters[d].counted) == 0 {
				return nil, nil, EnergyNotRead
			}
		}
		if to-from < LeastEnergySeconds*1e9 {
			return nil, nil, EnergyTooShort
		}
		for _, d := range devices {
			mj, ok := meters[d].between(from, to)
			if !ok {
				return nil, nil, EnergyNotCovered
			}
			millijoules += mj
		}
		for ; i <= j; i++ {
			counted = counted && t.Steps[i].Samples > 0
			samples += t.Steps[i].Samples
		}
	}
	joules := millijoules / 1e3
	step := joules / float64(len(t.Steps))
	if counted {
		sample := joules / float64(samples)
		perSample = &sample
	}
	return &step, perSample, ""
}

// An energyMeter returns one GPU's energy at any moment. NVML's energy counter is read only about once a second, or
// less often on a busy machine, but power is sampled several times a second. So the meter interpolates between two
// readings of the counter by the power. Shortly before the first and after the last reading, the meter adds the energy
// that the power sums to.
type energyMeter struct {
	powered []powerReading
	counted []counterReading
}

type counterReading struct{ ns, mj int64 }

// powerReading is a sample of the power, with the energy since the first sample: the sum of the trapezoids below the
// samples.
type powerReading struct {
	ns, mw int64
	mj     float64
}

func (m *energyMeter) add(s *schemas.Sample) {
	if s.EnergyMJ != nil {
		m.counted = append(m.counted, counterReading{s.TimeNS, *s.EnergyMJ})
	}
	if s.PowerMW == nil {
		return
	}
	p := powerReading{ns: s.TimeNS, mw: *s.PowerMW}
	if n := len(m.powered); n > 0 {
		last := &m.powered[n-1]
		p.mj = last.mj + float64(last.mw+p.mw)/2*float64(p.ns-last.ns)/1e9
	}
	m.powered = append(m.powered, p)
}

// between returns the energy from one moment to another. At most a tenth of that time may lie outside the counter's
// readings; otherwise ok is false.
func (m *energyMeter) between(from, to int64) (mj float64, ok bool) {
	first, last := m.counted[0].ns, m.counted[len(m.counted)-1].ns
	if outside := max(0, first-from) + max(0, to-last); 10*outside > to-from {
		return 0, false
	}
	a, okA := m.at(from)
	b, okB := m.at(to)
	return b - a, okA && okB && b >= a
}

func (m *energyMeter) at(ns int64) (mj float64, ok bool) {
	k, exact := slices.BinarySearchFunc(m.counted, ns, func(r counterReading, ns int64) int {
		return cmp.Compare(r.ns, ns)
	})
	switch {
	case exact:
		return float64(m.counted[k].mj), true
	case k == 0 || k == len(m.counted):
		r := m.counted[min(k, len(m.counted)-1)]
		p, okP := m.power(ns)
		q, okQ := m.power(r.ns)
		return float64(r.mj) + p - q, okP && okQ
	}
	a, b := m.counted[k-1], m.counted[k]
	part := float64(ns-a.ns) / float64(b.ns-a.ns)
	p, okP := m.power(ns)
	pa, okA := m.power(a.ns)
	pb, okB := m.power(b.ns)
	if okP && okA && okB && pb > pa {
		part = (p - pa) / (pb - pa)
	}
	return float64(a.mj) + float64(b.mj-a.mj)*part, true
}

// power returns the energy that the power samples sum to until a moment. ok is false if the nearest samples are far
// from the moment.
func (m *energyMeter) power(ns int64) (mj float64, ok bool) {
	const far = 2e9
	k, exact := slices.BinarySearchFunc(m.powered, ns, func(p powerReading, ns int64) int {
		return cmp.Compare(p.ns, ns)
	})
	switch {
	case exact:
		return m.powered[k].mj, true
	case k == 0:
		return 0, false
	}
	a := m.powered[k-1]
	if ns-a.ns > far || k < len(m.powered) && m.powered[k].ns-a.ns > far {
		return 0, false
	}
	mw := float64(a.mw)
	if k < len(m.powered) {
		b := m.powered[k]
		mw += float64(b.mw-a.mw) * float64(ns-a.ns) / float64(b.ns-a.ns) / 2
	}
	return a.mj + mw*float64(ns-a.ns)/1e9, true
}

// nvmlDevices lists the NVML indexes of the GPUs that the run used: the only visible GPU, else the GPUs with the UUIDs
// of the run's processes, else the only GPU sampled. nvmlDevices returns none if the GPUs are unknown. A process's
// device is torch's ordinal, not NVML's index: with CUDA_VISIBLE_DEVICES=3, cuda:0 is index 3.
func nvmlDevices(in *schemas.Tables) []int32 {
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
	return slices.Sorted(maps.Keys(used)) // sorted, since sums of floats depend on the order
}

// PeakDevice returns the highest memory in use that NVML saw on any GPU of the run, or nil if memory was not
// sampled.
func PeakDevice(in *schemas.Tables) *int64 {
	if in.Manifest.Source != schemas.Measured {
		return nil
	}
	var highest *int64
	for _, d := range nvmlDevices(in) {
		for i := range in.Samples {
			if s := &in.Samples[i]; s.Device == d && (highest == nil || s.UsedBytes > *highest) {
				highest = new(s.UsedBytes) // a pointer into the samples would keep them all
			}
		}
	}
	return highest
}

// During lists the timed steps in which some NVML sample meets the condition, and the timed steps with a sample for
// which the condition is known.
func During(in *schemas.Tables, t *Times, is func(*schemas.Sample) (known, yes bool, mask int64)) (steps, sampled []int,
	masks int64) {
	devices := map[int32]bool{}
	for _, d := range nvmlDevices(in) {
		devices[d] = true
	}
	k := 0 // samples and steps are both sorted by time
	for i := range t.Steps {
		st := &t.Steps[i]
		known, yes := false, false
		var mask int64
		for k < len(in.Samples) && in.Samples[k].TimeNS < st.startNS {
			k++
		}
		for j := k; j < len(in.Samples) && in.Samples[j].TimeNS <= st.endNS; j++ {
			if m := &in.Samples[j]; devices[m.Device] {
				says, is, reasons := is(m)
				known, yes, mask = known || says, yes || is, mask|reasons
			}
		}
		if known {
			sampled = append(sampled, i)
		}
		if yes {
			steps = append(steps, i)
			masks |= mask
		}
	}
	return steps, sampled, masks
}
