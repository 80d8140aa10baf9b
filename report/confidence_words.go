package report

import (
	"fmt"
	"math"
	"path"
	"strings"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/report/prose"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// Confidence says how sure the peak of a predicted run is, and why, in the words that its ingest report keeps: nil for
// other runs.
func Confidence(m *schemas.Manifest, r *schemas.IngestReport) *schemas.Confidence {
	a := confidence.Assess(m, r)
	if a == nil {
		return nil
	}
	c := &schemas.Confidence{Level: a.Level, KnownError: knownErrorWords(a.Known)}
	for i := range a.Reasons {
		c.Reasons = append(c.Reasons, confidenceWords(&a.Reasons[i]))
	}
	if a.Unchecked != nil { // else it was not asked
		c.Unchecked = []string{}
	}
	for _, u := range a.Unchecked {
		c.Unchecked = append(c.Unchecked, uncheckedWords(u))
	}
	return c
}

// ConfidenceOf returns the confidence that a run's report holds. A report that an older version wrote has none:
// ConfidenceOf then computes it.
func ConfidenceOf(in *schemas.Tables) *schemas.Confidence {
	if in.Report != nil && in.Report.Prediction != nil && in.Report.Prediction.Confidence != nil {
		return in.Report.Prediction.Confidence
	}
	return Confidence(in.Manifest, in.Report)
}

// Texts on failed requests, and on processes that left no journal.
const (
	whereOneFails = "where one fails depends on what a context takes, and on what else runs on the device"
	withoutAgent  = " loaded torch and trained nothing, or ran without the agent"
)

// confidenceWords say one reason of a level.
func confidenceWords(r *confidence.Reason) string {
	switch r.Kind {
	case confidence.NothingUnknown:
		return "nothing was read that nobody had computed"
	case confidence.NothingEstimated:
		return "no library was estimated or left out"
	case confidence.Compared:
		return fmt.Sprintf("predictions for %s under torch %s were compared with recordings", deviceKind(r.Name), r.Other)
	case confidence.OldVersion:
		return "it was made by a dpsight that did not keep what the script read"
	case confidence.AttachedLate:
		return "dpsight.attach() does not record which values the script read from the phantom GPU"
	case confidence.EndedBySteps:
		return endedWords(&schemas.Ended{Step: int64(r.Count)})
	case confidence.EndedEarly:
		return "the run ended early (" + r.Name + ")"
	case confidence.EventsMissing:
		return "the recording does not hold together: events are missing"
	case confidence.PeakBounded:
		return "the peak is bounded: the sizes of some blocks from before recording began are not known"
	case confidence.Unheard:
		return units.Plural(r.Count, "process", "processes") + withoutAgent + ": what it took is not in the peak"
	case confidence.Unsaid:
		return "a process did not live to say what it had read"
	case confidence.Nothing:
		return confidence.NothingTaken(r.Count).Error()
	case confidence.CaughtOOM:
		return "the script caught a request that failed for want of memory and went on: " + whereOneFails
	case confidence.AbsorbedOOM:
		return "torch tried workspaces that there was no memory for and took smaller ones: " + whereOneFails
	case confidence.Noted:
		return r.Name
	case confidence.GarbageForced, confidence.GarbageCollected, confidence.GarbageDecides, confidence.GarbageMatters:
		return garbageReason(r)
	case confidence.DrawnAnew, confidence.UnknownRead, confidence.Decided, confidence.CopiedRead,
		confidence.TakenForFinite,
		confidence.SizeByValues, confidence.CodeGenerated:
		return valuesWords(r)
	}
	return setupWords(r)
}

// valuesWords describes what depends on values that the phantom GPU does not compute.
func valuesWords(r *confidence.Reason) string {
	switch r.Kind {
	case confidence.DrawnAnew:
		return "Poisson sampling draws the sizes of batches at random, and no seed was seen: each run has other batches " +
			"and another peak, on a device too"
	case confidence.UnknownRead:
		return placesWords(r.Places, "read values that nobody had computed") + ": they read as zeros, single " +
			"floating-point numbers as ones that fall, and on a device the script may go another way there"
	case confidence.Decided:
		return decisionWords(r.Name, r.Other)
	case confidence.CopiedRead:
		return placesWords(r.Places, "read values that other ranks have a part in") + ": this rank's value was taken " +
			"for all ranks', and on devices the script may go another way there"
	case confidence.TakenForFinite:
		if len(r.Places) == 0 { // of an older version
			return fmt.Sprintf("the script asked whether values that nobody had computed are finite (%s), and they were "+
				"taken to be", prose.JoinWords(r.Names))
		}
		return placesWords(r.Places, "asked whether values that nobody had computed are finite or valid") +
			": they were taken to be"
	case confidence.CodeGenerated:
		return "torch.compile was used: what it generates depends on timings and caches, which a device has others of"
	case confidence.SizeByValues:
		return fmt.Sprintf("the size of what %s gives depends on values: it was taken for the most that it can be",
			prose.JoinWords(r.Names))
	}
	panic("no words for the reason " + string(r.Kind))
}

// shortPlace is a place in code with the folder of its file alone: whole paths of installed packages fill lines.
// Journals and JSON documents have the whole path.
func shortPlace(place string) string {
	folder, file := path.Split(place)
	return path.Join(path.Base(folder), file)
}

// placesWords say what the script did at one place, or at several and where these are.
func placesWords(places []schemas.Counted, did string) string {
	if len(places) == 1 {
		return shortPlace(places[0].Name) + " " + did + ", " + times(places[0].Count)
	}
	var named []string
	for i, c := range places {
		if i == mostNamed {
			named = append(named, "and at "+units.Plural(len(places)-i, "more place", "more places"))
			break
		}
		named = append(named, shortPlace(c.Name)+", "+times(c.Count))
	}
	return fmt.Sprintf("the script %s, in %d places, %s (%s)", did, len(places), times(confidence.SumOf(places)),
		strings.Join(named, "; "))
}

// setupWords speak of the device, of torch, and of where the driver puts segments.
func setupWords(r *confidence.Reason) string {
	switch r.Kind {
	case confidence.DeviceShared:
		return units.Plural(r.Count, "process", "processes") + " had memory of one device at once: how their peaks fall " +
			"together is another on a device, where they take time"
	case confidence.RanksTogether:
		return fmt.Sprintf("rank %d and rank %d had cuda:%d together and NCCL in use, which refuses two ranks on one "+
			"device of one host (NCCL_HOSTID): was torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) forgotten?",
			r.Ranks[0], r.Ranks[1], r.Device)
	case confidence.DeviceUnchecked:
		return "no prediction was ever compared with " + deviceKind(r.Name)
	case confidence.TorchUnknown:
		return fmt.Sprintf("which torch made it is not known, and predictions were compared with a device under %s alone",
			r.Other)
	case confidence.TorchUnchecked:
		return fmt.Sprintf("under torch %s no prediction was compared with a device, under %s they were", r.Name, r.Other)
	case confidence.OtherAddresses:
		return fmt.Sprintf("segments were placed by the policy %s, not as the profile says (%s)", r.Name, r.Other)
	case confidence.AddressesDecide:
		if !schemas.EndedByItself(r.Other) {
			return fmt.Sprintf("the peak with segments placed by the policy %s is not known: that run did not end by "+
				"itself (%s)", r.Name, r.Other)
		}
		return fmt.Sprintf("with segments placed by the policy %s the run ended otherwise: %s", r.Name, r.Other)
	case confidence.AddressesMatter:
		return fmt.Sprintf("where the driver puts segments moves the peak allocated: from %s to %s",
			units.MiB(r.Bytes[0]), units.MiB(r.Bytes[1]))
	}
	panic("no words for the reason " + string(r.Kind))
}

// deviceKind returns the name of a device, or a general word if it has none.
func deviceKind(name string) string {
	if name == "" {
		return "this kind of device"
	}
	return "this kind of device (" + name + ")"
}

func uncheckedWords(u confidence.Unchecked) string {
	switch u.Kind {
	case confidence.AttentionKernels:
		return "which attention kernels torch takes (SDPA)"
	case confidence.CuDNNEngines:
		return "cuDNN's engines and their workspaces"
	case confidence.CuBLASWorkspaces:
		return "the sizes of cuBLAS workspaces"
	case confidence.SegmentAddresses:
		return "where the driver puts segments"
	case confidence.BF16:
		return "bf16, which compute capability " + strings.Join(u.Names, ", ") + " has no instructions for"
	case confidence.PropertiesAssumed:
		return "properties that no source gives: " + strings.Join(u.Names, ", ")
	}
	panic("no words for what was not compared: " + string(u.Kind))
}

// knownErrorWords says how far off recorded cases were; nil if there are none.
func knownErrorWords(known []confidence.KnownErrors) *string {
	var said []string
	for i := range known {
		k := &known[i]
		said = append(said, fmt.Sprintf("of %s with %s %d came to the byte in allocated%s, %d in reserved%s",
			units.Plural(k.Allocated.Of, "script", "scripts"), k.Doubt,
			k.Allocated.Exact, worstWords(&k.Allocated), k.Reserved.Exact, worstWords(&k.Reserved)))
	}
	if said == nil {
		return nil
	}
	return new(strings.Join(said, "; "))
}

// worstWords are by how much the others were off at most.
func worstWords(e *confidence.AccuracyErrors) string {
	if e.Exact == e.Of {
		return ""
	}
	return fmt.Sprintf(" (off by at most %s: %s in docs/accuracy.md)", atMostPercent(*e.Worst), e.Where)
}

// atMostPercent rounds a share up, so that "at most" holds.
func atMostPercent(share float64) string {
	if share == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", math.Ceil(1000*share)/10)
}
