package confidence

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/prose"
	"github.com/dpsight/dpsight/schemas"
)

// Levels are those of confidence, the best first.
var Levels = []string{schemas.ExactExpected, schemas.Close, schemas.Indicative}

// judgement gathers what speaks against a prediction: each reason holds its level to what it names or worse.
type judgement struct {
	level   int
	reasons []string
	nothing bool // was taken of a device
}

func (j *judgement) atMost(level, format string, args ...any) {
	if i := slices.Index(Levels, level); i > j.level {
		j.level = i
	}
	j.reasons = append(j.reasons, fmt.Sprintf(format, args...))
}

// Assess says how sure the peak allocated of a predicted run is, and why: nil for other runs, and for those without
// tables.
//
//   - exact expected: all that it depends on was computed or modelled, on a profile and a torch whose predictions were
//     compared with recordings from such a device.
//
// - close: something that it depends on was estimated or unknown, and named, on a profile that was compared; or the
// profile
//
//	  was not, and nothing else speaks against it.
//	- indicative: both, or it cannot be told what was unknown.
//
// It looks at facts alone: the manifest, and what the phantom GPU said. Of what a script does at random it sees Poisson
// sampling alone.
func Assess(m *schemas.Manifest, r *schemas.IngestReport) *schemas.Confidence {
	if m.Source != schemas.Predicted || r == nil {
		return nil
	}
	j := &judgement{}
	f, p := m.Phantom, r.Prediction
	if f == nil || p == nil {
		j.atMost(schemas.Indicative, "it was made by a dpsight that did not keep what the script read")
		return &schemas.Confidence{Level: Levels[j.level], Reasons: j.reasons}
	}
	device := "this kind of device"
	if len(m.GPUs) > 0 {
		device += " (" + m.GPUs[0].Name + ")"
	}
	if j.run(m, r); j.nothing { // what else may be unknown has nothing to be unknown of
		return &schemas.Confidence{Level: Levels[j.level], Reasons: j.reasons}
	}
	if drawnAnew(m) {
		j.atMost(schemas.Close, "Poisson sampling draws the sizes of batches at random, and no seed was seen: each "+
			"run has other batches and another peak, on a device too")
	}
	const wherever = "where one fails depends on what a context takes, and on what else runs on the device"
	if caughtOOM(r) {
		j.atMost(schemas.Close, "the script caught a request that failed for want of memory and went on: "+wherever)
	} else if absorbedOOM(r) {
		j.atMost(schemas.Close, "torch tried workspaces that there was no memory for and took smaller ones: "+wherever)
	}
	if u := SharedDevice(m); u != nil {
		j.atMost(schemas.Indicative, "%s had memory of one device at once: how their peaks fall together is another "+
			"on a device, where they take time", prose.Plural(u.Processes, "process", "processes"))
		if a, b, same := ranksTogether(m, r, p); same {
			j.atMost(schemas.Indicative, "rank %d and rank %d had cuda:%d together and NCCL in use, which refuses "+
				"two ranks on one device of one host (NCCL_HOSTID): "+
				`was torch.cuda.set_device(int(os.environ["LOCAL_RANK"])) forgotten?`, a.Rank, b.Rank, a.Device)
		}
	}
	j.values(f, p)
	j.libraries(f, p)
	if f.Checked && m.Environment == nil {
		j.atMost(schemas.Close, "which torch made it is not known, and predictions were compared with a device under "+
			"%s alone", f.CheckedTorch)
	} else if f.Checked && !sameRelease(m.Environment.Torch, f.CheckedTorch) {
		j.atMost(schemas.Close, "under torch %s no prediction was compared with a device, under %s they were",
			m.Environment.Torch, f.CheckedTorch)
	}
	if !f.Checked {
		j.atMost(schemas.Close, "no prediction was ever compared with %s", device)
	}
	if f.Addresses != f.DefaultAddresses {
		j.atMost(schemas.Close, "segments were placed by the policy %s, not as the profile says (%s)", f.Addresses,
			f.DefaultAddresses)
	}
	for _, x := range f.Placements {
		if x.Status != m.Status {
			j.atMost(schemas.Close, "with segments placed by the policy %s the run ended otherwise: %s", x.Addresses,
				x.Status)
		}
	}
	if b := p.Band; b != nil && b.Allocated[0] != b.Allocated[1] {
		j.atMost(schemas.Close, "where the driver puts segments moves the peak allocated: from %s to %s",
			prose.MiB(b.Allocated[0]), prose.MiB(b.Allocated[1]))
	}
	j.garbage(m, r)
	if j.level == 0 {
		j.reasons = []string{"nothing was read that nobody had computed", "no library was estimated or left out",
			fmt.Sprintf("predictions for %s under torch %s were compared with recordings", device, f.CheckedTorch)}
	}
	c := &schemas.Confidence{Level: Levels[j.level], Reasons: j.reasons, Unchecked: unchecked(f)}
	if c.Level == schemas.Close {
		c.KnownError = knownError(Doubts(m, r))
	}
	return c
}

// ranksTogether gives two ranks of a group over NCCL whose memory is of the same device, of which several processes had
// memory at once. Where an ordinal may be another device in each rank it gives none.
func ranksTogether(m *schemas.Manifest, r *schemas.IngestReport, p *schemas.Prediction) (a, b schemas.DeviceVerdict,
	same bool) {
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.HasPrefix(n, "NCCL: ") }) {
		return a, b, false
	}
	reserved := func(d schemas.DeviceVerdict) int64 { // a bare run has torch's counter alone
		if d.TorchPeakReservedBytes != nil {
			return max(d.PeakReservedBytes, *d.TorchPeakReservedBytes)
		}
		return d.PeakReservedBytes
	}
	// of each rank: a tensor that was loaded onto another's device makes no communicator there
	fullest := map[int32]schemas.DeviceVerdict{}
	for _, d := range r.Devices {
		if f, ok := fullest[d.Rank]; !ok || reserved(d) > reserved(f) {
			fullest[d.Rank] = d
		}
	}
	ranks := slices.Sorted(maps.Keys(fullest))
	for i, x := range ranks {
		for _, y := range ranks[:i] {
			if fullest[x].Device != fullest[y].Device {
				continue
			}
			if u, known := SharedAs(m, r, fullest[x].Device); known && u != nil {
				return fullest[y], fullest[x], true
			}
		}
	}
	return a, b, false
}

// mostSeed is the largest seed that is taken for one that a script set: torch's own is a random 64-bit number, and one
// in four billion of these is no larger.
const mostSeed = 1<<32 - 1

// drawnAnew is whether each run of the experiment has batches of other sizes.
func drawnAnew(m *schemas.Manifest) bool {
	return Poisson(m) && (m.Environment == nil || m.Environment.Seed == nil || *m.Environment.Seed > mostSeed)
}

// Poisson is whether batches are drawn by Poisson sampling.
func Poisson(m *schemas.Manifest) bool {
	return m.Privacy != nil && m.Privacy.Poisson != nil && *m.Privacy.Poisson
}

// caughtOOM is whether the script went on after a request had failed.
func caughtOOM(r *schemas.IngestReport) bool {
	return slices.ContainsFunc(r.OOMs, func(o schemas.OOM) bool { return !o.Fatal && !o.Absorbed() })
}

// absorbedOOM is whether torch itself went on after a request had failed.
func absorbedOOM(r *schemas.IngestReport) bool {
	return slices.ContainsFunc(r.OOMs, func(o schemas.OOM) bool { return o.Absorbed() })
}

// TookNothing is whether a run that ended well allocated nothing on a device, as one that trained on the host.
func TookNothing(m *schemas.Manifest, r *schemas.IngestReport) bool {
	return m.Status == schemas.StatusOK && !slices.ContainsFunc(r.Devices, func(d schemas.DeviceVerdict) bool {
		return d.PeakAllocatedBytes > 0 || d.TorchPeakAllocatedBytes != nil && *d.TorchPeakAllocatedBytes > 0
	})
}

// NothingTaken is what is said of such a run.
const NothingTaken = "nothing was allocated on a CUDA device"

// NothingRecorded is what is said of such a run where processes of it left no journal: with them nobody knows.
func NothingRecorded(m *schemas.Manifest) string {
	n := len(m.Collector.Uninjected)
	if n == 0 {
		return NothingTaken
	}
	return NothingTaken + ", as far as was recorded: " + prose.Plural(n, "process", "processes") + WithoutAgent
}

// run looks at how the run ended.
func (j *judgement) run(m *schemas.Manifest, r *schemas.IngestReport) {
	switch m.Status {
	case schemas.StatusOK, schemas.StatusOOM:
	default:
		j.atMost(schemas.Indicative, "the run ended early (%s)", m.Status)
	}
	if slices.ContainsFunc(r.Devices, func(d schemas.DeviceVerdict) bool { return d.Verdict == schemas.Lossy }) {
		j.atMost(schemas.Indicative, "the recording does not hold together: events are missing")
	}
	unheard := len(m.Collector.Uninjected)
	if unheard > 0 && !TookNothing(m, r) {
		j.atMost(schemas.Indicative, "%s: what it took is not in the peak",
			prose.Plural(unheard, "process", "processes")+
				WithoutAgent)
	}
	switch {
	case r.Prediction != nil && !r.Prediction.Complete && (unheard == 0 || m.Status != schemas.StatusOK):
		j.atMost(schemas.Indicative, "a process did not live to say what it had read")
	case TookNothing(m, r):
		j.atMost(schemas.Indicative, "%s", NothingRecorded(m))
		j.nothing = true
	}
}

// values looks at what may have sent the script another way than on a device. On a profile that was never checked,
// where libraries may choose otherwise too, that is no more than a hint.
func (j *judgement) values(f *schemas.Phantom, p *schemas.Prediction) {
	worst := schemas.Close
	if !f.Checked {
		worst = schemas.Indicative
	}
	if reads := UnknownReads(p); len(reads) > 0 {
		j.atMost(worst, "the script read values that nobody had computed, in %s, %s: on a device it may go another "+
			"way there", prose.Plural(len(reads), "place", "places"), prose.Plural(int(SumOf(reads)), "time", "times"))
	}
	if len(p.CopiedReads) > 0 {
		j.atMost(worst, "the script read values that other ranks have a part in, in %s, %s: this rank's value was "+
			"taken for all ranks', and on devices it may go another way there",
			prose.Plural(len(p.CopiedReads), "place", "places"),
			prose.Plural(int(SumOf(p.CopiedReads)), "time", "times"))
	}
	if len(p.Assumptions) > 0 {
		j.atMost(worst, "the script asked whether values that nobody had computed are finite (%s), and they were "+
			"taken to be", prose.JoinWords(names(p.Assumptions)))
	}
	if len(p.Guesses) > 0 {
		j.atMost(worst, "the size of what %s gives depends on values: it was taken for the most that it can be",
			prose.JoinWords(names(p.Guesses)))
	}
}

// noOps mark the notes of what the phantom GPU knows nothing of: functions that fail, and kernels of libraries that are
// not torch's.
var noOps = []string{"cannot be answered without a device", "ran as no-ops"}

// libraries looks at what was estimated, refused or left out.
func (j *judgement) libraries(f *schemas.Phantom, p *schemas.Prediction) {
	for _, n := range p.Notes {
		level := schemas.Close
		if !f.Checked || slices.ContainsFunc(noOps, func(s string) bool { return strings.Contains(n, s) }) {
			level = schemas.Indicative
		}
		j.atMost(level, "%s", n)
	}
	if p.Compiled {
		worst := schemas.Close
		if !f.Checked {
			worst = schemas.Indicative
		}
		j.atMost(worst, "torch.compile was used: what it generates depends on timings and caches, which a device has "+
			"others of")
	}
}

// unchecked names what a profile can change and was never compared.
func unchecked(f *schemas.Phantom) []string {
	out := []string{}
	if f.Checked {
		return out
	}
	out = append(out, "which attention kernels torch takes (SDPA)", "cuDNN's engines and their workspaces",
		"the sizes of cuBLAS workspaces", "where the driver puts segments")
	if major, _, _ := strings.Cut(f.ComputeCapability, "."); len(major) == 1 && major < "8" {
		out = append(out, "bf16, which compute capability "+f.ComputeCapability+" has no instructions for")
	}
	if len(f.Assumed) > 0 {
		out = append(out, "properties that no source gives: "+strings.Join(f.Assumed, ", "))
	}
	return out
}

// sameRelease compares versions of torch without what they were built for.
func sameRelease(a, b string) bool {
	a, _, _ = strings.Cut(a, "+")
	b, _, _ = strings.Cut(b, "+")
	return a == b
}

// UnknownReads are those that could steer the script. The loop of the built-in experiments reads its last loss, to
// print it.
func UnknownReads(p *schemas.Prediction) []schemas.Counted {
	return slices.DeleteFunc(slices.Clone(p.UnknownReads), func(c schemas.Counted) bool {
		return strings.HasPrefix(c.Name, "dpsight_experiments/loop.py:")
	})
}

func SumOf(counts []schemas.Counted) (n int64) {
	for _, c := range counts {
		n += c.Count
	}
	return n
}

func names(counts []schemas.Counted) (out []string) {
	for _, c := range counts {
		out = append(out, c.Name)
	}
	return out
}

// Of is what the report holds, else what its facts say: reports of older versions hold neither.
func Of(in *schemas.Tables) *schemas.Confidence {
	if in.Report != nil && in.Report.Prediction != nil && in.Report.Prediction.Confidence != nil {
		return in.Report.Prediction.Confidence
	}
	return Assess(in.Manifest, in.Report)
}

// SharedDevice is the fullest of the devices that several processes of a predicted run had memory of at once, nil
// without one.
func SharedDevice(m *schemas.Manifest) (fullest *schemas.DeviceUse) {
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

// SharedAs is what several processes had together of the device that they have under one of torch's ordinals, nil where
// no more than one had memory of it at once. It is not known where an ordinal need not be the device's place in the
// machine: where a device was used whose place is no rank's ordinal, the ranks have a CUDA_VISIBLE_DEVICES of their
// own.
func SharedAs(m *schemas.Manifest, r *schemas.IngestReport, ordinal int32) (use *schemas.DeviceUse, known bool) {
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

// WithoutAgent is all that is known of a process that left no journal.
const WithoutAgent = " loaded torch and trained nothing, or ran without the agent"
