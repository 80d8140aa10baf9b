package schemas

// Step is one row of steps.parquet: one training step of one rank on one device. The columns of bytes are for this
// device only.
type Step struct {
	RunID  string `parquet:"run_id,dict"` // the run's id, as in run.json
	Rank   int32  `parquet:"rank,dict"`   // the process's RANK, from 0
	Device int32  `parquet:"device,dict"` // torch's ordinal of the device, from 0
	Step   int64  `parquet:"step,delta"`  // from 0
	// number of pairs of a forward and a backward in the step; 0 if they were not marked
	Microbatches int32 `parquet:"microbatches,dict"`
	Warmup       bool  `parquet:"warmup"` // warm-up steps are not timed
	// the step had module hooks and tags; published times come from steps without them
	Instrumented bool `parquet:"instrumented"`
	Recorded     bool `parquet:"recorded"` // allocator events were recorded
	// the step's phases were not marked: the step has a time, but its phases have no times
	Unphased bool  `parquet:"unphased,optional"`
	Samples  int64 `parquet:"samples,optional"` // number of samples that the script reported
	Tokens   int64 `parquet:"tokens,optional"`  // number of tokens that the script reported
	BeginK   int64 `parquet:"begin_k,delta"`    // number of the step's first mark
	EndK     int64 `parquet:"end_k,delta"`      // number of the mark that ends the step
	BeginSeq int64 `parquet:"begin_seq,delta"`  // events (BeginSeq, EndSeq] belong to the step
	EndSeq   int64 `parquet:"end_seq,delta"`    // last event that belongs to the step
	StartNS  int64 `parquet:"start_ns,delta"`   // ns, Unix time
	EndNS    int64 `parquet:"end_ns,delta"`     // ns, Unix time
	WallNS   int64 `parquet:"wall_ns"`          // wall time without drains, in ns
	// GPU time between CUDA events; null without a real GPU
	GPUNS          int64  `parquet:"gpu_ns,optional"`
	AllocatedBegin *int64 `parquet:"allocated_begin_bytes,optional"` // bytes allocated when the step began; null = unknown
	AllocatedEnd   *int64 `parquet:"allocated_end_bytes,optional"`   // bytes allocated when the step ended; null = unknown
	ReservedBegin  *int64 `parquet:"reserved_begin_bytes,optional"`  // bytes reserved when the step began; null = unknown
	ReservedEnd    *int64 `parquet:"reserved_end_bytes,optional"`    // bytes reserved when the step ended; null = unknown
	PeakBytes      *int64 `parquet:"peak_bytes,optional"`            // highest allocated within the step
}

// Steps is steps.parquet.
var Steps = Table[Step]{Name: "steps", Version: 1, Added: []string{"unphased"}}

// Phase is one row of phases.parquet: one occurrence of a phase on one device. Phases do not overlap: an inner phase
// interrupts the outer phase, which continues as a separate row.
type Phase struct {
	RunID          string `parquet:"run_id,dict"`                    // the run's id, as in run.json
	Rank           int32  `parquet:"rank,dict"`                      // the process's RANK, from 0
	Device         int32  `parquet:"device,dict"`                    // torch's ordinal of the device, from 0
	Step           int64  `parquet:"step,delta"`                     // -1 = before the first step
	Microbatch     int32  `parquet:"microbatch,dict"`                // number of the physical batch, from 0
	Phase          string `parquet:"phase,dict"`                     // name of the phase, dpsight's or the script's own
	BeginK         int64  `parquet:"begin_k,delta"`                  // number of the mark that begins the phase
	EndK           int64  `parquet:"end_k,delta"`                    // number of the mark that ends the phase
	BeginSeq       int64  `parquet:"begin_seq,delta"`                // events (BeginSeq, EndSeq] belong to the phase
	EndSeq         int64  `parquet:"end_seq,delta"`                  // last event that belongs to the phase
	StartNS        int64  `parquet:"start_ns,delta"`                 // ns, Unix time
	EndNS          int64  `parquet:"end_ns,delta"`                   // ns, Unix time
	GPUNS          *int64 `parquet:"gpu_ns,optional"`                // GPU time between CUDA events
	AllocatedBegin *int64 `parquet:"allocated_begin_bytes,optional"` // bytes when the phase began; null = unknown
	AllocatedEnd   *int64 `parquet:"allocated_end_bytes,optional"`   // bytes when the phase ended; null = unknown
	PeakBytes      *int64 `parquet:"peak_bytes,optional"`            // highest allocated within the phase
	PeakSeq        int64  `parquet:"peak_seq,optional"`              // first event at PeakBytes
}

// Phases is phases.parquet.
var Phases = Table[Phase]{Name: "phases", Version: 1}

// RankStep names a step of one process.
type RankStep struct {
	Rank int32 // the process's RANK, from 0
	Step int64 // from 0
}

// Captured returns the steps whose forward and backward a CUDA graph captured. The kernels of such a step were recorded
// into the graph and did not run, so no CUDA event could time them. The phases show a capture: the step has GPU time,
// but neither forward nor backward has any. A captured step's time covers only what the script did around the capture.
// Captured also returns steps whose forward and backward run on another thread than the first one with a mark. Only
// that first thread is timed, so the time of these steps would be as wrong.
func Captured(phases []Phase) map[RankStep]bool {
	const some, computing, timed = 1, 2, 4 // GPU time in any phase; forward or backward; GPU time in these
	seen := map[RankStep]int{}
	for i := range phases {
		p := &phases[i]
		if p.Step < 0 {
			continue
		}
		is := 0
		if OrZero(p.GPUNS) > 0 {
			is = some
		}
		switch p.Phase {
		case PhaseForward, PhaseBackward, PhaseBackwardNorm, PhaseBackwardGrad:
			if is |= computing; OrZero(p.GPUNS) > 0 {
				is |= timed
			}
		}
		seen[RankStep{p.Rank, p.Step}] |= is
	}
	captured := map[RankStep]bool{}
	for k, is := range seen {
		if is == some|computing {
			captured[k] = true
		}
	}
	return captured
}

// OrZero returns the value that v points to, or 0 if v is nil. Older versions of dpsight wrote null for 0 in figures of
// steps and phases.
func OrZero(v *int64) int64 {
	if v == nil {
		return 0
	}
	return *v
}
