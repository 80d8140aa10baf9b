package confidence

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// Levels are the levels of confidence, the best first.
var Levels = []string{schemas.ExactExpected, schemas.Close, schemas.Indicative}

// judgement collects the doubts about a prediction. Each reason has a level, and the confidence cannot be better than
// any reason's level.
type judgement struct {
	level   int
	reasons []Reason
	nothing bool // the script took no memory of a device
	checked bool // predictions for the profile were compared with such a device
}

func (j *judgement) atMost(level string, r Reason) {
	if i := slices.Index(Levels, level); i > j.level {
		j.level = i
	}
	j.reasons = append(j.reasons, r)
}

// inDoubt adds a reason why the script, or a library, may have run other code than it would on a real device. On a
// profile that was never checked, libraries may also choose other kernels, so the level falls to indicative.
func (j *judgement) inDoubt(r Reason) {
	if j.checked {
		j.atMost(schemas.Close, r)
	} else {
		j.atMost(schemas.Indicative, r)
	}
}

func (j *judgement) assessment() *Assessment {
	return &Assessment{Level: Levels[j.level], Reasons: j.reasons}
}

// Assess returns how certain the peak allocated of a predicted run is, and why. Assess returns nil for other runs and
// for runs without tables.
//
//   - exact expected: everything that the peak depends on was computed or modelled, on a profile and a torch whose
//     predictions were compared with recordings from such a device.
//   - close: something that the peak depends on was estimated or unknown, and is named, on a profile that was compared.
//     Or the profile was not compared, and there is no other doubt.
//   - indicative: the profile was not compared and there is another doubt, or the unknown parts cannot be named.
//
// Assess uses only the manifest and the ingest report. The only randomness in a script that Assess recognises is
// Poisson sampling.
func Assess(m *schemas.Manifest, r *schemas.IngestReport) *Assessment {
	if m.Source != schemas.Predicted || r == nil {
		return nil
	}
	j := &judgement{}
	f, p := m.Phantom, r.Prediction
	if f == nil || p == nil {
		why := OldVersion
		if m.Attached != nil {
			why = AttachedLate
		}
		j.atMost(schemas.Indicative, Reason{Kind: why})
		return j.assessment()
	}
	j.checked = f.Checked
	if j.run(m, r); j.nothing { // without device memory, nothing else can be unknown
		return j.assessment()
	}
	if drawnAnew(m) {
		j.atMost(schemas.Close, Reason{Kind: DrawnAnew})
	}
	if caughtOOM(r) {
		j.atMost(schemas.Close, Reason{Kind: CaughtOOM})
	} else if absorbedOOM(r) {
		j.atMost(schemas.Close, Reason{Kind: AbsorbedOOM})
	}
	j.sharing(m, r)
	if p.Ended != nil {
		j.inDoubt(Reason{Kind: EndedBySteps, Count: int(p.Ended.Step)})
	}
	j.values(f, p)
	j.libraries(p)
	j.compared(m)
	j.addresses(m, p)
	j.garbage(m, r)
	if j.level == 0 {
		j.reasons = []Reason{{Kind: NothingUnknown}, {Kind: NothingEstimated},
			{Kind: Compared, Name: deviceName(m), Other: f.CheckedTorch}}
	}
	a := j.assessment()
	a.Unchecked = unchecked(f)
	if a.Level == schemas.Close {
		a.Known = knownErrors(Doubts(m, r))
	}
	return a
}

// deviceName returns the name of the device that a run was predicted for, or "" if it is unknown.
func deviceName(m *schemas.Manifest) string {
	if len(m.GPUs) == 0 {
		return ""
	}
	return m.GPUs[0].Name
}

// sharing adds doubts if several processes had memory on the same device.
func (j *judgement) sharing(m *schemas.Manifest, r *schemas.IngestReport) {
	u := SharedDevice(m)
	if u == nil {
		return
	}
	j.atMost(schemas.Indicative, Reason{Kind: DeviceShared, Count: u.Processes})
	if a, b, same := ranksTogether(m, r, r.Prediction); same {
		j.atMost(schemas.Indicative, Reason{Kind: RanksTogether, Ranks: [2]int32{a.Rank, b.Rank}, Device: a.Device})
	}
}

// compared adds a doubt unless predictions for this device, with this version of torch, were compared with recordings.
func (j *judgement) compared(m *schemas.Manifest) {
	switch f := m.Phantom; {
	case !f.Checked:
		j.atMost(schemas.Close, Reason{Kind: DeviceUnchecked, Name: deviceName(m)})
	case m.Environment == nil && !schemas.EndedByItself(m.Status): // the run ended before torch reported its version
	case m.Environment == nil:
		j.atMost(schemas.Close, Reason{Kind: TorchUnknown, Other: f.CheckedTorch})
	case !sameRelease(m.Environment.Torch, f.CheckedTorch):
		j.atMost(schemas.Close, Reason{Kind: TorchUnchecked, Name: m.Environment.Torch, Other: f.CheckedTorch})
	}
}

// addresses adds doubts about what depends on the addresses at which the driver places segments.
func (j *judgement) addresses(m *schemas.Manifest, p *schemas.Prediction) {
	f := m.Phantom
	if f.Addresses != f.DefaultAddresses {
		j.atMost(schemas.Close, Reason{Kind: OtherAddresses, Name: f.Addresses, Other: f.DefaultAddresses})
	}
	for _, x := range f.Placements {
		if x.Status != m.Status && schemas.EndedByItself(m.Status) {
			j.atMost(schemas.Close, Reason{Kind: AddressesDecide, Name: x.Addresses, Other: x.Status})
		}
	}
	if b := p.Band; b != nil && b.Allocated[0] != b.Allocated[1] {
		j.atMost(schemas.Close, Reason{Kind: AddressesMatter, Bytes: b.Allocated})
	}
}

// ranksTogether returns two ranks of an NCCL group that had memory on the same device, if several processes had memory
// there at once. ranksTogether returns no ranks if the same device ordinal may mean different devices in different
// ranks.
func ranksTogether(m *schemas.Manifest, r *schemas.IngestReport, p *schemas.Prediction) (a, b schemas.DeviceVerdict,
	same bool) {
	if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.HasPrefix(n, "NCCL: ") }) {
		return a, b, false
	}
	reserved := func(d schemas.DeviceVerdict) int64 { // a bare run has only torch's counter
		if d.TorchPeakReservedBytes != nil {
			return max(d.PeakReservedBytes, *d.TorchPeakReservedBytes)
		}
		return d.PeakReservedBytes
	}
	// Of each rank, only the device with most reserved counts: a tensor loaded onto another rank's device creates no
	// NCCL communicator there.
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

// mostSeed is the largest seed that is assumed to be set by the script. torch's own seed is a random 64-bit number,
// and only one in four billion of these is smaller.
const mostSeed = 1<<32 - 1

// drawnAnew reports whether the sizes of batches are random and differ from run to run of the experiment.
func drawnAnew(m *schemas.Manifest) bool {
	return Poisson(m) && (m.Environment == nil || m.Environment.Seed == nil || *m.Environment.Seed > mostSeed)
}

// Poisson reports whether batches are drawn by Poisson sampling.
func Poisson(m *schemas.Manifest) bool {
	return m.Privacy != nil && m.Privacy.Poisson != nil && *m.Privacy.Poisson
}

// caughtOOM reports whether the script caught an out-of-memory error and went on.
func caughtOOM(r *schemas.IngestReport) bool {
	return slices.ContainsFunc(r.OOMs, func(o schemas.OOM) bool { return !o.Fatal && !o.Absorbed() })
}

// absorbedOOM reports whether torch itself recovered from a failed memory request.
func absorbedOOM(r *schemas.IngestReport) bool {
	return slices.ContainsFunc(r.OOMs, func(o schemas.OOM) bool { return o.Absorbed() })
}

// TookNothing reports whether a run that ended well allocated nothing on a device, as if it trained on the host.
func TookNothing(m *schemas.Manifest, r *schemas.IngestReport) bool {
	return m.Status == schemas.StatusOK && !slices.ContainsFunc(r.Devices, func(d schemas.DeviceVerdict) bool {
		return d.PeakAllocatedBytes > 0 || d.TorchPeakAllocatedBytes != nil && *d.TorchPeakAllocatedBytes > 0
	})
}

// NothingTaken returns the error for a run that took no device memory. unheard is the number of processes that left no
// journal, so that their use of memory is unknown.
func NothingTaken(unheard int) error {
	processes := "processes"
	switch unheard {
	case 0:
		return errors.New("nothing was allocated on a CUDA device")
	case 1:
		processes = "process"
	}
	return fmt.Errorf("nothing was allocated on a CUDA device, as far as was recorded: %d %s loaded torch but trained "+
		"nothing, or ran without the agent", unheard, processes)
}

// run adds doubts about how the run ended, and notes whether it took any device memory.
func (j *judgement) run(m *schemas.Manifest, r *schemas.IngestReport) {
	switch m.Status {
	case schemas.StatusOK, schemas.StatusOOM:
	default:
		j.atMost(schemas.Indicative, Reason{Kind: EndedEarly, Name: m.Status})
	}
	if slices.ContainsFunc(r.Devices, func(d schemas.DeviceVerdict) bool { return d.Verdict == schemas.Lossy }) {
		j.atMost(schemas.Indicative, Reason{Kind: EventsMissing})
	}
	if slices.ContainsFunc(r.Devices, func(d schemas.DeviceVerdict) bool { return d.Verdict == schemas.Bounded }) {
		j.atMost(schemas.Indicative, Reason{Kind: PeakBounded})
	}
	unheard := len(m.Collector.Uninjected)
	ended := !schemas.EndedByItself(m.Status) // the script reported little or nothing
	if unheard > 0 && !TookNothing(m, r) && !(ended && len(r.Devices) == 0) {
		j.atMost(schemas.Indicative, Reason{Kind: Unheard, Count: unheard})
	}
	switch {
	case ended:
	case r.Prediction != nil && !r.Prediction.Complete && (unheard == 0 || m.Status != schemas.StatusOK):
		j.atMost(schemas.Indicative, Reason{Kind: Unsaid})
	case TookNothing(m, r):
		j.atMost(schemas.Indicative, Reason{Kind: Nothing, Count: unheard})
		j.nothing = true
	}
}

// values adds doubts about values that the script read and that may have made it take another path than on a real
// device.
func (j *judgement) values(f *schemas.Phantom, p *schemas.Prediction) {
	if reads := undecided(UnknownReads(p), f.Decisions); len(reads) > 0 {
		j.inDoubt(Reason{Kind: UnknownRead, Places: reads})
	}
	for _, d := range f.Decisions {
		j.inDoubt(Reason{Kind: Decided, Name: d.Place, Other: d.Error})
	}
	if len(p.CopiedReads) > 0 {
		j.inDoubt(Reason{Kind: CopiedRead, Places: p.CopiedReads})
	}
	if len(p.Assumptions) > 0 {
		j.inDoubt(Reason{Kind: TakenForFinite, Places: p.AssumedAt, Names: names(p.Assumptions)})
	}
	if len(p.Guesses) > 0 {
		j.inDoubt(Reason{Kind: SizeByValues, Names: names(p.Guesses)})
	}
}

// undecided returns the reads at source lines that appear in no decision, since each decision is a reason of its own.
func undecided(reads []schemas.Counted, decisions []schemas.Decision) []schemas.Counted {
	return slices.DeleteFunc(reads, func(c schemas.Counted) bool {
		return slices.ContainsFunc(decisions, func(d schemas.Decision) bool {
			return d.Line() == c.Name
		})
	})
}

// noOps are phrases that mark notes about what the phantom GPU cannot model: functions that fail, sizes that only a
// real device reports, and kernels of libraries other than torch.
var noOps = []string{schemas.NoteUnanswered, schemas.NoteEstimated, schemas.NoteNoOps}

// libraries adds doubts about library calls that the phantom GPU estimated, refused or left out.
func (j *judgement) libraries(p *schemas.Prediction) {
	for _, n := range p.Notes {
		if strings.Contains(n, schemas.OldNoteFinite) && len(p.Assumptions) > 0 {
			continue // the reason TakenForFinite covers the note, for runs that have it
		}
		note := Reason{Kind: Noted, Name: n}
		if slices.ContainsFunc(noOps, func(s string) bool { return strings.Contains(n, s) }) {
			j.atMost(schemas.Indicative, note)
		} else {
			j.inDoubt(note)
		}
	}
	if p.Compiled {
		j.inDoubt(Reason{Kind: CodeGenerated})
	}
}

// unchecked lists what a profile determines and nobody has compared with a real device. The list is empty for a checked
// profile.
func unchecked(f *schemas.Phantom) []Unchecked {
	out := []Unchecked{}
	if f.Checked {
		return out
	}
	out = append(out, Unchecked{Kind: AttentionKernels}, Unchecked{Kind: CuDNNEngines}, Unchecked{Kind: CuBLASWorkspaces},
		Unchecked{Kind: SegmentAddresses})
	if major, _, _ := strings.Cut(f.ComputeCapability, "."); len(major) == 1 && major < "8" {
		out = append(out, Unchecked{Kind: BF16, Names: []string{f.ComputeCapability}})
	}
	if len(f.Assumed) > 0 {
		out = append(out, Unchecked{Kind: PropertiesAssumed, Names: f.Assumed})
	}
	return out
}

// sameRelease reports whether two versions of torch are equal apart from the build, such as +cu130.
func sameRelease(a, b string) bool {
	a, _, _ = strings.Cut(a, "+")
	b, _, _ = strings.Cut(b, "+")
	return a == b
}

// UnknownReads lists the reads that could change what the script does. The built-in experiments read their last loss
// only to print it, so UnknownReads leaves out that read.
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

// Of returns how certain the peak of a predicted run is. Of prefers the confidence determined when the run was read,
// which exists if an older version wrote the ingest report, to the report's. Of returns nil if neither exists.
func Of(in *schemas.Tables) *schemas.Confidence {
	if in.Confidence != nil {
		return in.Confidence
	}
	if in.Report != nil && in.Report.Prediction != nil && in.Report.Prediction.Confidence != nil {
		return in.Report.Prediction.Confidence
	}
	return nil
}

// SharedDevice returns, of the devices on which several processes of a predicted run had memory at once, the one with
// most reserved; nil if there is no such device.
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

// SharedAs returns how several processes together used the device that they address by one of torch's ordinals.
// SharedAs returns nil if never more than one process had memory on the device at once. known is false if an ordinal
// need not be the device's place in the machine. known is false if no rank uses a used device's place as its ordinal:
// the ranks then have different values of CUDA_VISIBLE_DEVICES.
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
	if found > 1 { // the ranks were predicted in separate machines
		return nil, false
	}
	return use, true
}
