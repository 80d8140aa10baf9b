package analyze

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// windowed has two windows of one step each and a step between them: step 0 with events 1 and 2, and step 2 from event
// 3 on, the gap, with 4 and 5. Between the windows a block of 300 bytes was made in a segment of its own.
func windowed() Input {
	const gap = 3
	in := Input{Manifest: &schemas.Manifest{RunID: "w", Status: schemas.StatusOK, Source: schemas.Predicted},
		Report: &schemas.IngestReport{}}
	in.Steps = []schemas.Step{{Step: 0, Recorded: true, Instrumented: true, EndSeq: 2}, {Step: 1},
		{Step: 2, Recorded: true, Instrumented: true, BeginSeq: gap, EndSeq: 5}}
	for i, f := range []schemas.Phase{
		{Step: -1, Phase: schemas.PhaseSetupModel},
		{Step: 0, Phase: schemas.PhaseForward, EndSeq: 2, PeakBytes: 1000, PeakSeq: 2},
		{Step: 0, Phase: schemas.PhaseBetween, BeginSeq: 2, EndSeq: 2, PeakBytes: 1000},
		{Step: 1, Phase: schemas.PhaseForward},
		{Step: 1, Phase: schemas.PhaseBetween},
		{Step: 2, Phase: schemas.PhaseBetween}, // part of it before the window opened
		{Step: 2, Phase: schemas.PhaseForward, BeginSeq: gap, EndSeq: 5, PeakBytes: 1800, PeakSeq: 5},
		{Step: 3, Phase: schemas.PhaseBetween}, // after the last step
	} {
		f.BeginK, f.EndK = int64(i), int64(i+1)
		in.Phases = append(in.Phases, f)
	}
	block := func(address uint64, bytes, seq int64, step int64, phase string, c schemas.Category) {
		id := int64(len(in.Allocations) + 1)
		in.Allocations = append(in.Allocations, schemas.Allocation{AllocID: id, Address: address, RequestedBytes: bytes,
			BlockBytes: bytes, AllocSeq: seq, Step: step, Phase: phase})
		in.Owners = append(in.Owners, schemas.Owner{AllocID: id, Category: c, BeginSeq: seq, Evidence: schemas.Tagged})
	}
	block(0, 1000, 2, 0, schemas.PhaseForward, schemas.Parameters)
	block(4000, 300, gap, -1, "", schemas.Untraced)
	block(8000, 500, 5, 2, schemas.PhaseForward, schemas.Activations)
	in.Events = []schemas.Event{{Seq: 1, Action: int32(schemas.ActionSegmentAlloc), Size: 2000},
		{Seq: gap, Action: int32(schemas.ActionGap), Size: 1000}, {Seq: 4, Action: int32(schemas.ActionSegmentMap),
			Addr: 8000, Size: 600}}
	list := func(segment, address uint64, segmentBytes int64, expandable bool) schemas.SegmentBlock {
		return schemas.SegmentBlock{At: "window", Seq: gap, SegmentAddress: segment, SegmentBytes: segmentBytes,
			Address: address, Expandable: expandable}
	}
	in.Segments = []schemas.SegmentBlock{list(0, 0, 2000, false), list(0, 1000, 2000, false),
		list(4000, 4000, 300, false), list(7300, 7300, 700, true)}
	in.Report.Devices = []schemas.DeviceVerdict{{Verdict: schemas.Exact, Events: 5, PeakSeq: 5,
		InstrumentedPeakSeq: new(int64(5)), PeakAllocatedBytes: 1800, PeakReservedBytes: 3600}}
	return in
}

// A phase that is not recorded to its end has no bytes, and not none; before the first event there is nothing
// allocated.
func TestPhasesBetweenWindows(t *testing.T) {
	in := windowed()
	lowest := map[string]int64{}
	for _, r := range Phases(in).Phases {
		lowest[r.Phase] = *r.LowestPeakBytes
	}
	if lowest[schemas.PhaseBetween] != 1000 || lowest[schemas.PhaseForward] != 1000 ||
		lowest[schemas.PhaseSetupModel] != 0 {
		t.Errorf("lowest peaks %v", lowest)
	}
	for at, want := range map[string]string{
		"step=2,phase=between": "between of step 2 on cuda:0 lies in part where no events were recorded",
		"step=3":               "between of step 3 on cuda:0 lies in part where no events were recorded",
		"step=1,phase=forward": "step 1 on cuda:0 was not recorded",
	} {
		a, err := ParseAt(at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Breakdown(in, a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if run, err := Breakdown(in, At{Step: new(int64(2))}); err != nil || run.Devices[0].AllocatedBytes != 1800 {
		t.Errorf("%+v, %v", run, err)
	}
	// Neither a zero_grad nor a forward pass of a time without events begins at event 0.
	for i := range in.Phases {
		if f := &in.Phases[i]; f.Step > 0 && f.Phase == schemas.PhaseBetween {
			f.Phase = schemas.PhaseZeroGrad
		}
	}
	if got := in.zeroed(place{}); len(got) != 0 {
		t.Errorf("zero_grad at %v", got)
	}
	if got := in.firstForwards(place{}); len(got) != 2 || got[2] != 3 {
		t.Errorf("forward at %v", got)
	}
}

// What was made between two windows is not what was there before recording began.
func TestBornBetweenWindows(t *testing.T) {
	in := windowed()
	in.Allocations[1].BlockBytes += 12 // slack, which is none of them
	f := theFinding(t, inspected(in), FindingUnattributed)
	if f == nil || *f.Bytes != 300 || !strings.Contains(f.Sentence, "were made in steps that were not recorded") ||
		strings.Contains(f.Sentence, "before recording") ||
		strings.Contains(f.Sentence, "fit no rule") || !strings.Contains(f.Change, "--window-steps") ||
		strings.Contains(f.Change, "under dpsight collect") ||
		!slices.ContainsFunc(f.Figures, func(g FindingFigure) bool {
			return g.What == "of it made between windows" && g.Value == 300
		}) {
		t.Errorf("%+v", f)
	}
	in = windowed()
	in.Allocations[1].AllocSeq, in.Owners[1].BeginSeq = 0, 0
	f = theFinding(t, inspected(in), FindingUnattributed)
	if f == nil || !strings.Contains(f.Sentence, "were live before recording began") ||
		strings.Contains(f.Change, "--window-steps") {
		t.Errorf("%+v", f)
	}
}

// The segments after a gap are those of the list with which the window opened, and what came since.
func TestSegmentsAfterGap(t *testing.T) {
	in, p := windowed(), place{}
	later := in.Segments[3] // with which another window opens
	later.Seq, later.SegmentAddress, later.Address = 9, 12000, 12000
	in.Segments = append(in.Segments, later)
	if got := in.segmentsAt(p, 5); !slices.Equal(got, []extent{{0, 2000}, {4000, 4300}, {7300, 8600}}) {
		t.Errorf("%v", got)
	}
	lay := in.layoutAt(p, newLedger(&in, p), 5)
	if lay == nil || lay.reserved != 3600 || lay.allocated != 1800 || lay.gaps != 1800 || lay.largest != 1000 {
		t.Errorf("%+v", lay)
	}
	if got := in.segmentsAt(p, 2); !slices.Equal(got, []extent{{0, 2000}}) {
		t.Errorf("before the gap: %v", got)
	}
	if n := Inspect(in); slices.ContainsFunc(n.notLooked, func(s string) bool {
		return strings.HasPrefix(s, "cached bytes")
	}) {
		t.Errorf("%v", n.notLooked)
	}
	// Without the list nothing is said of free bytes, and that is said.
	in.Segments = nil
	if n := Inspect(in); in.layoutAt(p, newLedger(&in, p), 5) != nil ||
		!slices.Contains(n.notLooked, "cached bytes: the segments of the highest reserved are not all known") {
		t.Errorf("%v", n.notLooked)
	}
}

// What a gap reserved nobody knows the reason of; what is cached when it ends is known.
func TestReservedInGap(t *testing.T) {
	const piece = 64 << 20
	in := pieces(6, 2, 6*piece)
	if theFinding(t, inspected(in), FindingFragmentation) == nil {
		t.Fatal("no fragmentation to begin with")
	}
	gap := &in.Events[len(in.Events)-1]
	in.Segments = []schemas.SegmentBlock{{Seq: gap.Seq, SegmentAddress: gap.Addr, SegmentBytes: gap.Size,
		Address: gap.Addr}}
	for _, e := range in.Events[:len(in.Events)-1] {
		in.Segments = append(in.Segments, schemas.SegmentBlock{Seq: gap.Seq, SegmentAddress: e.Addr,
			SegmentBytes: e.Size, Address: e.Addr})
	}
	gap.Action, gap.Addr = int32(schemas.ActionGap), 0
	last := len(in.Allocations) - 1
	in.Allocations[last].AllocSeq, in.Owners[last].BeginSeq = gap.Seq, gap.Seq
	list := inspected(in)
	if f := theFinding(t, list, FindingFragmentation); f != nil {
		t.Errorf("%+v", f)
	}
	if f := theFinding(t, list, FindingCached); f == nil || *f.Bytes != 2*piece || f.At.Event != gap.Seq {
		t.Errorf("%+v", f)
	}
}

// Where torch counted a higher peak than was recorded, nothing is said of the peak, and no saving of it.
func TestHighestRecordedIsNotThePeak(t *testing.T) {
	parts := []part{{category: schemas.Parameters, bytes: 300 << 20}, {category: schemas.PerSampleGradients,
		bytes: 400 << 20}, {category: schemas.ClipTemporaries, bytes: 200 << 20},
		{category: schemas.OptimizerTemporaries, bytes: 100 << 20, phase: schemas.PhaseOptimizer},
		{category: schemas.Activations, bytes: 200 << 20, more: schemas.HookActivations},
		{category: schemas.HookActivations, bytes: 100 << 20},
		{category: schemas.Outputs, bytes: 100 << 20, module: 2}, {category: schemas.ActivationGradients,
			bytes: 100 << 20, slack: 100 << 20}, {category: schemas.Other, bytes: 100 << 20},
		{category: schemas.Workspace, bytes: 64 << 20}, {category: schemas.Workspace, bytes: 64 << 20},
		{category: schemas.Workspace, bytes: 64 << 20, stream: 7}}
	in := peakOf(parts...)
	saving := 0
	for _, f := range inspected(in) {
		if f.SavesBytes != nil {
			saving++
		}
	}
	if saving < 6 {
		t.Errorf("%d findings save bytes where the peak is known", saving)
	}
	in.Report.Devices[0].TorchPeakAllocatedBytes = new(int64(5000 << 20))
	ids := map[string]bool{}
	for _, f := range inspected(in) {
		ids[f.ID] = true
		if f.ID == FindingPeakNotBrokenDown {
			continue
		}
		if strings.Contains(strings.ToLower(f.Sentence), "the peak") || f.Of == OfPeakAllocated || f.SavesBytes != nil {
			t.Errorf("%s of a peak that was not recorded: %+v", f.ID, f)
		}
		for _, g := range f.Figures {
			if strings.Contains(g.What, "peak") {
				t.Errorf("%s: %s", f.ID, g.What)
			}
		}
	}
	for _, id := range []string{FindingPeakNotBrokenDown, FindingPerSample, FindingClipTemporaries,
		FindingOptimizerPeak, FindingSharedHooks, FindingOwnHooks, FindingOutputCopies, FindingSlack,
		FindingStreamWorkspaces, FindingThreadWorkspaces, FindingUnattributed, FindingRuleOfThumb} {
		if !ids[id] {
			t.Errorf("no %s", id)
		}
	}
	kept := keptRun(false)
	kept.Report.Devices[0].TorchPeakAllocatedBytes = new(int64(100000))
	if f := theFinding(t, inspected(kept), FindingKeptGradients); f == nil || f.SavesBytes != nil ||
		strings.Contains(f.Sentence, "the peak") {
		t.Errorf("%+v", f)
	}
	// What is reserved above the true peak is all that can be spared.
	cached := pieces(8, 4, 7*64<<20)
	f := theFinding(t, inspected(cached), FindingCached)
	if f == nil || f.SavesBytes == nil || f.Of != OfPeakReserved ||
		!strings.Contains(f.Sentence, "When what torch reserved was highest, ") {
		t.Fatalf("%+v", f)
	}
	saved := *f.SavesBytes
	cached.Report.Devices[0].TorchPeakReservedBytes = new(cached.Report.Devices[0].PeakReservedBytes + 1000)
	for _, id := range []string{FindingCached, FindingFragmentation} {
		if f := theFinding(t, inspected(cached), id); f == nil || f.Of != OfRecordedReserved ||
			!strings.Contains(f.Sentence, "the highest recorded") || id == FindingCached &&
			*f.SavesBytes != saved+1000 {
			t.Errorf("%s: %+v", id, f)
		}
	}
	cached.Report.Devices[0].TorchPeakAllocatedBytes = new(int64(1 << 40))
	if f := theFinding(t, inspected(cached), FindingCached); f != nil {
		t.Errorf("%+v", f)
	}
}
