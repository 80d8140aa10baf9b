package ladder

import (
	"slices"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// Tables lists the tables that a ladder needs.
const Tables = memory.LedgerTables | schemas.WantSamples | schemas.WantClock

// Schema is the version of [Document].
const Schema = "dpsight.ladder/1"

// Document is what "dpsight ladder --format json" prints.
type Document struct {
	Schema string `json:"schema"`
	Runs   []Run  `json:"runs"`
}

// NewDocument makes the document of these runs.
func NewDocument(runs ...Run) Document {
	if runs == nil {
		runs = []Run{}
	}
	identity.Distinguish(runs, func(r *Run) *identity.Identity { return &r.Identity })
	return Document{Schema, runs}
}

// Run has one run's ladders, one for each GPU. GPUs is empty for a run that used no GPU.
type Run struct {
	identity.Identity
	GPUs     []GPULadder `json:"gpus"`
	Warnings []string    `json:"warnings"`
	// NotIngested is true if the run has no tables yet. The report turns it into a warning.
	NotIngested bool `json:"-"`
	// Unsampled lists why GPUs have no samples, each reason once. The report turns the reasons into warnings.
	Unsampled []Unsampled `json:"-"`
}

// GPULadder is the memory of one GPU at several moments, from the bytes that NVML says are in use down to the
// categories of allocated bytes.
type GPULadder struct {
	GPU        *string  `json:"gpu"`
	UUID       *string  `json:"uuid"`
	Index      *int64   `json:"index"` // NVML's index of the GPU; null without samples
	TotalBytes *int64   `json:"total_bytes"`
	Devices    []Device `json:"devices"`
	Moments    []Moment `json:"moments"`
	// OutsideTorch lists the bytes that the GPU had in use beyond those that torch reserved, at each change while
	// events were recorded. The bytes outside torch change, for example, when CUDA loads a module at its first call.
	OutsideTorch []OutsideTorch `json:"outside_torch"`
}

// Device is a device of one rank, which lies on the GPU that it is listed under.
type Device struct {
	Device string `json:"device"`
	Rank   int32  `json:"rank"`
}

// OutsideTorch is a level of the memory outside torch, device used minus reserved, that begins at a settled NVML
// sample.
type OutsideTorch struct {
	TimeNS int64   `json:"time_ns"`
	Step   *int64  `json:"step"`
	Phase  *string `json:"phase"`
	Bytes  int64   `json:"bytes"`
}

// The moments of a ladder.
const (
	DevicePeak = "device_peak" // the highest device used that NVML saw
	// RecordedPeak is the highest device used that NVML saw while allocator events were recorded, if the device's peak
	// lies outside that time.
	RecordedPeak  = "recorded_peak"
	AllocatorPeak = "allocator_peak" // the highest allocated on one rank's device
)

// Moment is the ladder of a GPU at one moment. If all parts of a rung are known, they sum to the rung, to the byte.
//
// Moments refer to calls on the host: NVML and the allocator count a segment when cudaMalloc returns, even if the GPU
// still computes earlier work. Samples carry the host's Unix time, taken before NVML is asked. Events carry Unix time
// too, which torch derives from the CPU's counter, to the microsecond. So the two clocks differ by far less than the
// time between two samples.
type Moment struct {
	At     string  `json:"at"`
	Device *string `json:"device"` // device with this allocator peak; null at a peak of device used
	Rank   *int32  `json:"rank"`
	TimeNS *int64  `json:"time_ns"` // Unix time; null if no clock shows it
	// Event is the last event before the moment. Event is null in steps that were not recorded, and for a GPU with
	// several devices.
	Event *int64  `json:"event"`
	Step  *int64  `json:"step"`
	Phase *string `json:"phase"`
	// SampleOffsetNS is the time of the NVML sample from which the rungs outside torch come, minus TimeNS.
	// SampleOffsetNS is 0 at the device's peak.
	SampleOffsetNS *int64 `json:"sample_offset_ns"`
	// MemoryAPI is the version of NVML's memory query, 1 or 2. In version 2, device used excludes the driver's reserve:
	// total = used + DriverReserveBytes + free.
	MemoryAPI          *int64   `json:"memory_api"`
	DriverReserveBytes *int64   `json:"driver_reserve_bytes"`
	OtherProcesses     *int64   `json:"other_processes"` // number of other processes
	Rungs              []Rung   `json:"rungs"`           // rungs, each after the rung that contains it
	Notes              []string `json:"notes"`           // sentences that report makes of Remarks
	Remarks            []Remark `json:"-"`
}

// The rungs of a ladder. Rungs whose bytes are known only as a sum are merged into one rung, whose name joins their
// names by "+".
const (
	RungDeviceUsed     = "device_used"
	RungOtherProcesses = "other_processes"
	RungDriverReserve  = "driver_reserve"
	RungDriver         = "driver" // memory in use by NVML's count, but charged to no process
	RungContext        = "context"
	RungModules        = "modules" // CUDA modules, which are code
	RungNonTorch       = "non_torch"
	RungReserved       = "reserved"
	RungAllocated      = "allocated"
	RungPendingFree    = "pending_free"
	RungCached         = "cached"
)

// The values of [Rung.How]: how the bytes of a rung are known.
const (
	HowSampled    = "sampled"    // NVML's value at the moment
	HowNearby     = "nearby"     // NVML's value at a sample near the moment
	HowReplayed   = "replayed"   // value from the allocator's events
	HowCounted    = "counted"    // value of torch's own counter
	HowDifference = "difference" // the outer rung minus its other parts
	HowSum        = "sum"        // sum of the rungs in it
	HowUnknown    = "unknown"    // the bytes are unknown, so Bytes is null
)

// Rung is one part of a GPU's memory. In is the name of the rung that contains it, or null for the top rung. The parts
// of the rung allocated are categories.
type Rung struct {
	Rung  string  `json:"rung"`
	In    *string `json:"in"`
	Bytes *int64  `json:"bytes"`
	How   string  `json:"how"`
}

// Rung returns the named rung; nil if the moment has no such rung.
func (m *Moment) Rung(name string) *Rung {
	for i := range m.Rungs {
		if m.Rungs[i].Rung == name {
			return &m.Rungs[i]
		}
	}
	return nil
}

func (m *Moment) add(name, in string, bytes *int64, how string) {
	r := Rung{Rung: name, Bytes: bytes, How: how}
	if in != "" {
		r.In = &in
	}
	if bytes == nil {
		r.How = HowUnknown
	}
	m.Rungs = append(m.Rungs, r)
}

func (m *Moment) remark(r Remark) { m.Remarks = append(m.Remarks, r) }

// Of returns each GPU's ladder at up to three kinds of moments: at the GPU's peak, at its highest while events were
// recorded (if that is another moment), and at the peak of each allocator on the GPU. For a run that used no GPU it
// returns the identity and a [*NoEventsError].
func Of(in schemas.Tables) (Run, error) { return With(&in, memory.NewLedgers(&in)) }

func With(in *schemas.Tables, ledgers *memory.Ledgers) (Run, error) {
	run := Run{Identity: identity.Of(in), GPUs: []GPULadder{}, Warnings: []string{}}
	if in.Report == nil {
		run.NotIngested = true
	} else {
		run.Warnings = append(run.Warnings, in.Report.Warnings...)
	}
	if len(identity.Places(in)) == 0 {
		return run, memory.NoEvents(in)
	}
	for _, g := range gpus(in, ledgers) {
		l := GPULadder{Devices: []Device{}, Moments: []Moment{}, OutsideTorch: []OutsideTorch{}}
		if g.gpu != nil {
			l.GPU, l.UUID = identity.OrNull(g.gpu.Name), identity.OrNull(g.gpu.UUID)
			l.TotalBytes = identity.Known(g.gpu.TotalBytes)
			if len(g.samples) > 0 {
				l.Index = new(int64(g.gpu.Index))
			}
		}
		for _, d := range g.devices {
			l.Devices = append(l.Devices, Device{d.p.String(), d.p.Rank})
		}
		if m := g.devicePeak(); m != nil {
			l.Moments = append(l.Moments, *m)
			if m.Rung(RungPendingFree) == nil { // only torch's counters describe the moment
				if m := g.recordedPeak(); m != nil {
					l.Moments = append(l.Moments, *m)
				}
			}
		}
		for _, d := range g.devices {
			if m := g.allocatorPeak(d); m != nil {
				l.Moments = append(l.Moments, *m)
			}
		}
		if len(g.samples) > 0 {
			l.OutsideTorch = g.outsideTorch()
		} else if !slices.Contains(run.Unsampled, g.without) {
			run.Unsampled = append(run.Unsampled, g.without)
		}
		run.GPUs = append(run.GPUs, l)
	}
	return run, nil
}

// gpu is a GPU with its NVML samples and the allocators whose devices lie on it.
type gpu struct {
	gpu     *schemas.GPU // nil = it is unknown which GPU
	samples []*schemas.Sample
	without Unsampled // why there are no samples
	devices []*allocator
}

// gpus groups the run's devices by GPU.
func gpus(in *schemas.Tables, ledgers *memory.Ledgers) []*gpu {
	var out []*gpu
	for _, p := range identity.Places(in) {
		card, without := gpuOf(in, p)
		var g *gpu
		for _, o := range out {
			// Without samples, the devices of a GPU stay separate: no clock shows what they held at the same moment.
			if card != nil && o.gpu == card && without.Why == "" {
				g = o
			}
		}
		if g == nil {
			g = &gpu{gpu: card, without: without}
			for i := range in.Samples {
				if s := &in.Samples[i]; card != nil && without.Why == "" && int(s.Device) == card.Index {
					g.samples = append(g.samples, s)
				}
			}
			if len(g.samples) == 0 && g.without.Why == "" {
				g.without = Unsampled{Why: UnsampledNever, Device: p.String()}
			}
			out = append(out, g)
		}
		g.devices = append(g.devices, newAllocator(in, p, ledgers.Of(p)))
	}
	return out
}

// gpuOf finds the GPU of a rank's device by its UUID. Without a UUID it takes the run's only GPU. The second result
// says why the GPU's NVML samples are missing or cannot be used.
func gpuOf(in *schemas.Tables, p identity.Place) (*schemas.GPU, Unsampled) {
	gpus := in.Manifest.GPUs
	var only *schemas.GPU
	if len(gpus) == 1 {
		only = &gpus[0]
	}
	switch in.Manifest.Source {
	case schemas.Predicted:
		return only, Unsampled{Why: UnsampledPhantom}
	case schemas.Imported:
		return only, Unsampled{Why: UnsampledImported}
	}
	for i := range in.Processes {
		pr := &in.Processes[i]
		if pr.Rank != p.Rank || pr.Device != p.Device || pr.UUID == "" {
			continue
		}
		var match *schemas.GPU
		for k := range gpus {
			if gpus[k].UUID == pr.UUID && match != nil {
				return nil, Unsampled{Why: UnsampledTwin, Device: p.String(), UUID: pr.UUID}
			} else if gpus[k].UUID == pr.UUID {
				match = &gpus[k]
			}
		}
		if match == nil {
			return nil, Unsampled{Why: UnsampledUnknown, Device: p.String(), UUID: pr.UUID}
		}
		return match, Unsampled{}
	}
	if only == nil {
		return nil, Unsampled{Why: UnsampledWhich, Device: p.String(), GPUs: len(gpus)}
	}
	return only, Unsampled{}
}
