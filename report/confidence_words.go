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

// Confidence returns how far a predicted run's peak can be trusted, and why, in the words that its ingest report keeps.
// Confidence returns nil for a run that is not a prediction.
func Confidence(m *schemas.Manifest, r *schemas.IngestReport) *schemas.Confidence {
	a := confidence.Assess(m, r)
	if a == nil {
		return nil
	}
	c := &schemas.Confidence{Level: a.Level, KnownError: knownErrorWords(a.Known)}
	for i := range a.Reasons {
		c.Reasons = append(c.Reasons, confidenceWords(&a.Reasons[i]))
	}
	if a.Unchecked != nil { // otherwise the check was not requested
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

// Texts for doubts about failed requests, and about processes that left no journal.
const (
	whereOneFails = "which request fails depends on the CUDA context, and on what else runs on the device"
	withoutAgent  = " loaded torch but trained nothing, or ran without the agent"
)

// confidenceWords put one doubt into words.
func confidenceWords(r *confidence.Reason) string {
	switch r.Kind {
	case confidence.NothingUnknown:
		return "the script read no values that the phantom GPU does not compute"
	case confidence.NothingEstimated:
		return "no library was estimated or left out"
	case confidence.Compared:
		return fmt.Sprintf("predictions for %s with torch %s were compared with recordings", deviceKind(r.Name), r.Other)
	case confidence.OldVersion:
		return "an older dpsight made it, and did not record what the script read"
	case confidence.AttachedLate:
		return "dpsight.attach() does not record which values the script read from the phantom GPU"
	case confidence.EndedBySteps:
		return endedWords(&schemas.Ended{Step: int64(r.Count)})
	case confidence.EndedEarly:
		return "the run ended early (" + r.Name + ")"
	case confidence.EventsMissing:
		return "the recording is incomplete: events are missing"
	case confidence.PeakBounded:
		return "the peak is bounded: the sizes of some blocks from before the recording are unknown"
	case confidence.Unheard:
		return units.Plural(r.Count, "process", "processes") + withoutAgent + ": the peak lacks that memory"
	case confidence.Unsaid:
		return "a process ended before it could report what it had read"
	case confidence.Nothing:
		return confidence.NothingTaken(r.Count).Error()
	case confidence.CaughtOOM:
		return "the script caught an out-of-memory error and continued: " + whereOneFails
	case confidence.AbsorbedOOM:
		return "torch had no memory for some workspaces and used smaller ones: " + whereOneFails
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

// valuesWords describe how a prediction depends on values that the phantom GPU does not compute.
func valuesWords(r *confidence.Reason) string {
	switch r.Kind {
	case confidence.DrawnAnew:
		return "Poisson sampling draws batch sizes at random, and the script sets no seed: each run has other batches and " +
			"another peak, on a real GPU too"
	case confidence.UnknownRead:
		return placesWords(r.Places, "read values that the phantom GPU does not compute") + ": if the script branches " +
			"on them, a real GPU may behave differently"
	case confidence.Decided:
		return decisionWords(r.Name, r.Other)
	case confidence.CopiedRead:
		return placesWords(r.Places, "read values that depend on other ranks") + ": dpsight used this rank's value " +
			"for all ranks; if the script branches on them, real GPUs may behave differently"
	case confidence.TakenForFinite:
		if len(r.Places) == 0 { // an older version recorded no places
			return fmt.Sprintf("the script asked whether values are finite that the phantom GPU does not compute (%s): dpsight "+
				"answered yes", prose.JoinWords(r.Names))
		}
		return placesWords(r.Places, "asked whether values are finite or valid that the phantom GPU does not compute") +
			": dpsight answered yes"
	case confidence.CodeGenerated:
		return "the script uses torch.compile: the code that it generates depends on timings and caches, which differ on a " +
			"real GPU"
	case confidence.SizeByValues:
		return fmt.Sprintf("the size of the output of %s depends on values: dpsight assumed the largest size",
			prose.JoinWords(r.Names))
	}
	panic("no words for the reason " + string(r.Kind))
}

// shortPlace shortens a place in code to the file with its folder, since whole paths of installed packages would fill
// lines. Journals and JSON documents have the whole path.
func shortPlace(place string) string {
	folder, file := path.Split(place)
	return path.Join(path.Base(folder), file)
}

// placesWords say what the script did, and at which place or places in its code.
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

// setupWords describe doubts about the device, about torch, and about where the driver places segments.
func setupWords(r *confidence.Reason) string {
	switch r.Kind {
	case confidence.DeviceShared:
		return units.Plural(r.Count, "process", "processes") + " used one device at the same time: how their peaks " +
			"coincide may differ on a real GPU, where steps take time"
	case confidence.RanksTogether:
		return fmt.Sprintf("rank %d and rank %d had cuda:%d together and NCCL in use, which refuses two ranks on one "+
			"device of one host (NCCL_HOSTID): was torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) forgotten?",
			r.Ranks[0], r.Ranks[1], r.Device)
	case confidence.DeviceUnchecked:
		return "no prediction was ever compared with " + deviceKind(r.Name)
	case confidence.TorchUnknown:
		return fmt.Sprintf("its version of torch is unknown, and predictions were compared with a device only with torch %s",
			r.Other)
	case confidence.TorchUnchecked:
		return fmt.Sprintf("with torch %s no prediction was compared with a device, with torch %s they were", r.Name, r.Other)
	case confidence.OtherAddresses:
		return fmt.Sprintf("the policy %s placed segments, not the one of the profile (%s)", r.Name, r.Other)
	case confidence.AddressesDecide:
		if !schemas.EndedByItself(r.Other) {
			return fmt.Sprintf("the peak with segments placed by the policy %s is unknown: that run did not end by itself "+
				"(%s)", r.Name, r.Other)
		}
		return fmt.Sprintf("with segments placed by the policy %s, the run ended differently: %s", r.Name, r.Other)
	case confidence.AddressesMatter:
		return fmt.Sprintf("the peak allocated depends on where the driver puts segments: from %s to %s",
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
		return "which attention kernels torch uses (SDPA)"
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

// knownErrorWords say how far off recorded predictions with the same doubt were. knownErrorWords are nil if no recorded
// prediction had the same doubt.
func knownErrorWords(known []confidence.KnownErrors) *string {
	var said []string
	for i := range known {
		k := &known[i]
		said = append(said, fmt.Sprintf("of %s with %s, %d were predicted to the byte in allocated%s, %d in reserved%s",
			units.Plural(k.Allocated.Of, "script", "scripts"), k.Doubt,
			k.Allocated.Exact, worstWords(&k.Allocated), k.Reserved.Exact, worstWords(&k.Reserved)))
	}
	if said == nil {
		return nil
	}
	return new(strings.Join(said, "; "))
}

// worstWords state the largest error among the predictions that were not exact.
func worstWords(e *confidence.AccuracyErrors) string {
	if e.Exact == e.Of {
		return ""
	}
	return fmt.Sprintf(" (off by at most %s: %s in docs/accuracy.md)", atMostPercent(*e.Worst), e.Where)
}

// atMostPercent rounds a share up, so that the words "at most" are true.
func atMostPercent(share float64) string {
	if share == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", math.Ceil(1000*share)/10)
}
