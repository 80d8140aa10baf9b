package findings

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// If a phase is not recorded to its end, its bytes are unknown and not 0. Before the first event of the run, the bytes
// are known to be 0.
func TestPhasesBetweenWindows(t *testing.T) {
	in := fixture.Windowed()
	lowest := map[string]int64{}
	for _, r := range analyze.Phases(in).Phases {
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
		a, err := memory.ParseAt(at)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := memory.Breakdown(in, a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if run, err := memory.Breakdown(in, memory.At{Step: new(int64(2))}); err != nil ||
		run.Devices[0].AllocatedBytes != 1800 {
		t.Errorf("%+v, %v", run, err)
	}
	// If a zero_grad or a forward pass lies in a time without events, it must not count as beginning at event 0.
	for i := range in.Phases {
		if f := &in.Phases[i]; f.Step > 0 && f.Phase == schemas.PhaseBetween {
			f.Phase = schemas.PhaseZeroGrad
		}
	}
	if got := firstForwards(&in, identity.Place{}); len(got) != 2 || got[2] != 3 {
		t.Errorf("forward at %v", got)
	}
}

// A block that was allocated between two windows does not count as a block from before recording.
func TestBornBetweenWindows(t *testing.T) {
	in := fixture.Windowed()
	in.Allocations[1].BlockBytes += 12 // slack is no part of the unattributed bytes
	f := theFinding(t, inspected(in), Unattributed)
	if x := factsOf[UnattributedFacts](t, f); *f.Bytes != 300 || x != (UnattributedFacts{0, 300, 300}) {
		t.Errorf("%+v", f)
	}
	in = fixture.Windowed()
	in.Allocations[1].AllocSeq, in.Owners[1].BeginSeq = 0, 0
	f = theFinding(t, inspected(in), Unattributed)
	if x := factsOf[UnattributedFacts](t, f); x.UntracedBytes != 300 || x.BetweenBytes != 0 {
		t.Errorf("%+v", f)
	}
}

// Each window begins with a list of blocks. If these lists are missing, no finding states free bytes, and the run's
// result says that dpsight could not examine them.
func TestCachedBytesWithoutLists(t *testing.T) {
	in := fixture.Windowed()
	if n := CheckRun(in); slices.Contains(n.notLooked, NotLooked{What: CachedBytes}) {
		t.Errorf("%v", n.notLooked)
	}
	in.Segments = nil
	if n := CheckRun(in); !slices.Contains(n.notLooked, NotLooked{What: CachedBytes}) {
		t.Errorf("%v", n.notLooked)
	}
}

// If memory was reserved in a gap between windows, dpsight does not know why. dpsight knows which memory is cached when
// the gap ends.
func TestReservedInGap(t *testing.T) {
	const piece = 64 << 20
	in := fixture.Pieces(6, 2, 6*piece)
	if theFinding(t, inspected(in), Fragmentation) == nil {
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
	if f := theFinding(t, list, Fragmentation); f != nil {
		t.Errorf("%+v", f)
	}
	if f := theFinding(t, list, Cached); f == nil || *f.Bytes != 2*piece || f.At.Event != gap.Seq {
		t.Errorf("%+v", f)
	}
}

// If torch's counter has a higher peak than the recorded events, no finding states a saving of the peak.
func TestHighestRecordedIsNotThePeak(t *testing.T) {
	parts := []fixture.Part{{Category: schemas.Parameters, Bytes: 300 << 20}, {Category: schemas.PerSampleGradients,
		Bytes: 400 << 20}, {Category: schemas.ClipTemporaries, Bytes: 200 << 20},
		{Category: schemas.OptimizerTemporaries, Bytes: 100 << 20, Phase: schemas.PhaseOptimizer},
		{Category: schemas.Activations, Bytes: 200 << 20, More: schemas.HookActivations},
		{Category: schemas.HookActivations, Bytes: 100 << 20},
		{Category: schemas.Outputs, Bytes: 100 << 20, Module: 2}, {Category: schemas.ActivationGradients,
			Bytes: 100 << 20, Slack: 100 << 20}, {Category: schemas.Other, Bytes: 100 << 20},
		{Category: schemas.Workspace, Bytes: 64 << 20}, {Category: schemas.Workspace, Bytes: 64 << 20},
		{Category: schemas.Workspace, Bytes: 64 << 20, Stream: 7}}
	in := fixture.PeakOf(parts...)
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
		if f.ID == PeakNotBrokenDown {
			continue
		}
		if f.Highest.IsPeak || f.Of == OfPeakAllocated || f.SavesBytes != nil {
			t.Errorf("%s of a peak that was not recorded: %+v", f.ID, f)
		}
	}
	for _, id := range []string{PeakNotBrokenDown, PerSample, ClipTemporaries,
		OptimizerPeak, SharedHooks, OwnHooks, OutputCopies, Slack,
		StreamWorkspaces, ThreadWorkspaces, Unattributed, RuleOfThumb} {
		if !ids[id] {
			t.Errorf("no %s", id)
		}
	}
	kept := fixture.KeptRun(false)
	kept.Report.Devices[0].TorchPeakAllocatedBytes = new(int64(100000))
	if f := theFinding(t, inspected(kept), KeptGradients); f == nil || f.SavesBytes != nil || f.Highest.IsPeak {
		t.Errorf("%+v", f)
	}
	// Only the reserved bytes above torch's peak of allocated can be saved.
	cached := fixture.Pieces(8, 4, 7*64<<20)
	f := theFinding(t, inspected(cached), Cached)
	if f == nil || f.SavesBytes == nil || f.Of != OfPeakReserved {
		t.Fatalf("%+v", f)
	}
	saved := *f.SavesBytes
	cached.Report.Devices[0].TorchPeakReservedBytes = new(cached.Report.Devices[0].PeakReservedBytes + 1000)
	for _, id := range []string{Cached, Fragmentation} {
		if f := theFinding(t, inspected(cached), id); f == nil || f.Of != OfRecordedReserved ||
			id == Cached && *f.SavesBytes != saved+1000 {
			t.Errorf("%s: %+v", id, f)
		}
	}
	cached.Report.Devices[0].TorchPeakAllocatedBytes = new(int64(1 << 40))
	if f := theFinding(t, inspected(cached), Cached); f != nil {
		t.Errorf("%+v", f)
	}
}
