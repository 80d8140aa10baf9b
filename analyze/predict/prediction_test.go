package predict

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/schemas"
)

// If a script catches a failed request and ends well, its prediction fits. The script may have tried how much fits, or
// have set a limit itself. In a search, however, the value does not fit, unless the script had set the limit.
func TestPredictSaysWhatWasSurvived(t *testing.T) {
	in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
	in.Manifest.Source = schemas.Predicted
	if p := Predict(in); p.Fits == nil || !*p.Fits || p.Because != (Because{}) || p.CaughtOOMs != 0 ||
		len(p.Remarks) != 0 {
		t.Errorf("%+v", p)
	}
	in.Report.OOMs = []schemas.OOM{{RequestedBytes: 1 << 30, Step: 2}}
	p := Predict(in)
	if !*p.Fits || p.Because != (Because{}) || p.CaughtOOMs != 1 || len(p.Survived) != 1 ||
		p.Survived[0].RequestedBytes != 1<<30 || p.Survived[0].Step != 2 {
		t.Errorf("fits %v, %d caught, survived %+v", *p.Fits, p.CaughtOOMs, p.Survived)
	}
	in.Manifest.GPUs = []schemas.GPU{{TotalBytes: 8 << 30}}
	for limit, fits := range map[int64]bool{0: false, 8 << 30: false, 2 << 30: true} {
		in.Report.OOMs[0].LimitBytes = limit
		if r := NewFitRun(in).Run; *r.Fits != fits || (r.Because.Cause == CauseCaught) == fits ||
			(r.SpareBytes != nil) != fits && r.MemoryBytes != nil {
			t.Errorf("a search says %v, %+v at a limit of %d bytes", *r.Fits, r.Because, limit)
		}
		if p := Predict(in); !*p.Fits {
			t.Errorf("a prediction does not fit at a limit of %d bytes", limit)
		}
	}
	in.Manifest.Status, in.Manifest.Reason = schemas.StatusFailed, "ValueError"
	if p = Predict(in); p.Fits != nil ||
		p.Because != (Because{Cause: CauseEnded, Status: "failed", Reason: "ValueError"}) {
		t.Errorf("fits %v, %+v", p.Fits, p.Because)
	}
	in.Manifest.Status, in.Report.OOMs[0].Fatal = schemas.StatusOOM, true
	if p = Predict(in); *p.Fits || p.Because != (Because{}) || p.CaughtOOMs != 0 {
		t.Errorf("fits %v, %+v", *p.Fits, p.Because)
	}
}

// If torch itself continues after a failed request, as for a workspace, the script does not notice the failure, and the
// run fits.
func TestPredictFitsWithoutWorkspaces(t *testing.T) {
	in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
	in.Manifest.Source = schemas.Predicted
	in.Report.OOMs = []schemas.OOM{{RequestedBytes: 1 << 30, Raised: new(false)}, {RequestedBytes: 2 << 30,
		Raised: new(false)}}
	p := Predict(in)
	if !*p.Fits || p.CaughtOOMs != 0 || p.AbsorbedOOMs != 2 {
		t.Errorf("fits %v, %d caught, %d absorbed", *p.Fits, p.CaughtOOMs, p.AbsorbedOOMs)
	}
	in.Report.OOMs[1].Raised = new(true)
	if p := NewFitRun(in).Run; *p.Fits || p.CaughtOOMs != 1 || p.AbsorbedOOMs != 1 {
		t.Errorf("fits %v, %d caught, %d absorbed", *p.Fits, p.CaughtOOMs, p.AbsorbedOOMs)
	}
}

// If other ranks contribute to a value, the prediction does not treat the value as known.
func TestPredictListsWhatWasTakenForAllRanks(t *testing.T) {
	in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
	in.Manifest.Source, in.Manifest.Environment = schemas.Predicted, &schemas.Environment{Torch: "2.11.0"}
	in.Manifest.Phantom = &schemas.Phantom{Checked: true, CheckedTorch: "2.11.0"}
	in.Report.Prediction = &schemas.Prediction{Complete: true}
	if c := confidence.Assess(in.Manifest, in.Report); c.Level != schemas.ExactExpected {
		t.Fatalf("%+v", c)
	}
	in.Report.Prediction.CopiedReads = []schemas.Counted{{Name: "world.py:4", Count: 2}}
	p := Predict(in)
	if c := confidence.Assess(in.Manifest, in.Report); c.Level != schemas.Close ||
		c.Reasons[0].Kind != confidence.CopiedRead || len(p.CopiedReads) != 1 ||
		confidence.Doubts(in.Manifest, in.Report)[0] != schemas.DoubtRanks {
		t.Errorf("%+v, %+v", c, p.CopiedReads)
	}
}

// If no process reported any figures, the prediction does not treat the unknown figures as 0.
func TestPredictDoesNotKnowWhatWasNotSaid(t *testing.T) {
	in := schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Name: "x", Status: schemas.StatusOK,
		Source: schemas.Predicted},
		Report: &schemas.IngestReport{Prediction: &schemas.Prediction{}}}
	p := Predict(in)
	if p.Fits != nil || p.Because != (Because{Cause: CauseUnsaid}) || len(p.Remarks) != 0 {
		t.Errorf("fits %v, %+v, %+v", p.Fits, p.Because, p.Remarks)
	}
}

// If a script ended well and used no device memory, the prediction gives one reason for this, whether or not a process
// left a journal.
func TestPredictOfNothingTaken(t *testing.T) {
	for _, c := range []struct {
		uninjected []string
		told       bool
	}{{nil, true}, {[]string{"python cpu.py"}, false}} {
		unheard := len(c.uninjected)
		in := schemas.Tables{Manifest: &schemas.Manifest{RunID: "r", Name: "x", Status: schemas.StatusOK,
			Source: schemas.Predicted, Phantom: &schemas.Phantom{Checked: true, CheckedTorch: "2.11.0"}},
			Report: &schemas.IngestReport{Prediction: &schemas.Prediction{Complete: c.told}}}
		in.Manifest.Collector.Uninjected = c.uninjected
		p := Predict(in)
		if p.Fits != nil || p.Because != (Because{Cause: CauseNothing, Unheard: unheard}) || len(p.Remarks) != 0 ||
			confidence.Assess(in.Manifest, in.Report).Level != schemas.Indicative {
			t.Errorf("fits %v, %+v, %+v", p.Fits, p.Because, p.Remarks)
		}
		if _, err := memory.Breakdown(in, memory.At{}); err == nil || strings.Contains(err.Error(), "live to say") {
			t.Error(err)
		}
	}
}

// Four ranks share devices. The spare bytes of a rank are what all processes on the rank's device left free. If each
// rank has a different CUDA_VISIBLE_DEVICES, the recording does not show which device a rank used.
func TestRanksOfSeveralSharedDevices(t *testing.T) {
	const memory = 1 << 30
	for _, c := range []struct {
		what     string
		ordinals [4]int32 // the device ordinal of each rank
		uses     []schemas.DeviceUse
		spare    [4]int64 // spare MiB of each rank
		together bool
	}{
		{"two of each", [4]int32{0, 0, 1, 1}, []schemas.DeviceUse{{Device: 0, Processes: 2, ReservedBytes: 600 << 20,
			TakenBytes: 900 << 20}, {Device: 1, Processes: 2, ReservedBytes: 500 << 20, TakenBytes: 800 << 20}},
			[4]int64{124, 124, 224, 224}, true},
		{"the second alone", [4]int32{0, 1, 1, 2},
			[]schemas.DeviceUse{{Device: 0, Processes: 1, ReservedBytes: 700 << 20, TakenBytes: 700 << 20},
				{Device: 1, Processes: 2, ReservedBytes: 500 << 20, TakenBytes: 800 << 20},
				{Device: 2, Processes: 1, ReservedBytes: 1, TakenBytes: 1}}, [4]int64{1023, 224, 224, 1023}, true},
		{"each sees one", [4]int32{0, 0, 0, 0}, []schemas.DeviceUse{{Device: 0, Processes: 2, ReservedBytes: 500 << 20,
			TakenBytes: 800 << 20}, {Device: 1, Processes: 2, ReservedBytes: 600 << 20, TakenBytes: 900 << 20}},
			[4]int64{124, 124, 124, 124}, false},
		{"all see the third", [4]int32{0, 0, 0, 0},
			[]schemas.DeviceUse{{Device: 2, Processes: 4, ReservedBytes: 600 << 20, TakenBytes: 900 << 20}},
			[4]int64{124, 124, 124, 124}, true},
		{"in machines of their own", [4]int32{0, 0, 1, 1}, []schemas.DeviceUse{{Device: 0, Processes: 1},
			{Device: 0, Processes: 2, TakenBytes: 900 << 20}, {Device: 1, Processes: 1}},
			[4]int64{124, 124, 1023, 1023}, false},
	} {
		in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
		in.Manifest.Source, in.Manifest.Phantom = schemas.Predicted, &schemas.Phantom{MemoryBytes: memory,
			Devices: c.uses}
		in.Report.Prediction = &schemas.Prediction{Complete: true, Notes: []string{"NCCL: peers are copies of this rank"}}
		v := in.Report.Devices[0]
		v.PeakReservedBytes, in.Report.Devices = 1<<20, nil
		for rank, ordinal := range c.ordinals {
			v.Rank, v.Device = int32(rank), ordinal
			in.Report.Devices = append(in.Report.Devices, v)
		}
		least := int64(memory)
		for rank, r := range ranks(&in, new(int64(memory))) {
			if least = min(least, *r.SpareBytes); r.Rank != int32(rank) || *r.SpareBytes != c.spare[rank]<<20 {
				t.Errorf("%s: rank %d has %d MiB spare", c.what, r.Rank, *r.SpareBytes>>20)
			}
		}
		if p := Predict(in); p.SpareBytes == nil || *p.SpareBytes > least {
			t.Errorf("%s: %v spare", c.what, p.SpareBytes)
		}
		if got := reasonOf(in, confidence.RanksTogether) != nil; got != c.together {
			t.Errorf("%s: together %v", c.what, got)
		}
	}
}

// If several processes share a device and the device's own figures are known, the prediction uses these. The device
// then counts once.
func TestPredictCountsDevices(t *testing.T) {
	in := fixture.Sized("train", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
	in.Manifest.Source = schemas.Predicted
	in.Report.Prediction = &schemas.Prediction{Complete: true}
	other := in.Report.Devices[0]
	other.Rank = 1
	in.Report.Devices = append(in.Report.Devices, other)
	in.Manifest.Phantom = &schemas.Phantom{MemoryBytes: 1 << 30}
	if p := Predict(in); !slices.Equal(p.Remarks, []analyze.Remark{{Kind: analyze.RemarkOfFullest, N: 2}}) {
		t.Errorf("%+v", p.Remarks)
	}
	in.Manifest.Phantom.Devices = []schemas.DeviceUse{{Processes: 1, ReservedBytes: 1 << 20, TakenBytes: 1 << 20}}
	if p := Predict(in); len(p.Remarks) != 0 {
		t.Errorf("one after the other: %+v", p.Remarks)
	}
	in.Manifest.Phantom.Devices[0] = schemas.DeviceUse{Processes: 2, ReservedBytes: 600 << 20, TakenBytes: 900 << 20}
	p := Predict(in)
	if !slices.Equal(p.Remarks, []analyze.Remark{{Kind: analyze.RemarkTogether, N: 2}}) ||
		*p.PeakReservedBytes != 600<<20 || *p.SpareBytes != 124<<20 {
		t.Errorf("%d reserved, %d spare, %+v", *p.PeakReservedBytes, *p.SpareBytes, p.Remarks)
	}
	if c := confidence.Assess(in.Manifest, in.Report); c.Level != schemas.Indicative ||
		reasonOf(in, confidence.DeviceShared).Count != 2 || reasonOf(in, confidence.RanksTogether) != nil {
		t.Errorf("%+v", c)
	}
	// With gloo, ranks may share a device. NCCL would refuse this. If a rank has more memory on another device, the
	// rank's NCCL communicator is there.
	in.Report.Prediction.Notes = []string{"NCCL: peers are copies of this rank"}
	if r := reasonOf(in, confidence.RanksTogether); r == nil || r.Ranks != [2]int32{0, 1} || r.Device != 0 {
		t.Errorf("%+v", r)
	}
	other.Device, other.PeakReservedBytes = 1, 2*other.PeakReservedBytes+1
	in.Report.Devices = append(in.Report.Devices, other)
	if r := reasonOf(in, confidence.RanksTogether); r != nil {
		t.Errorf("%+v", r)
	}
}

// reasonOf returns the prediction's reason of the given kind, or nil if it has no such reason.
func reasonOf(in schemas.Tables, kind confidence.Kind) *confidence.Reason {
	reasons := confidence.Assess(in.Manifest, in.Report).Reasons
	for i := range reasons {
		if reasons[i].Kind == kind {
			return &reasons[i]
		}
	}
	return nil
}

// If a run's recording failed, the memory that the run needed afterwards is unknown.
func TestPredictDoesNotKnowWhatWasNotRecorded(t *testing.T) {
	for _, fatal := range []bool{false, true} {
		in := fixture.Sized("ghost", map[schemas.Category]int64{schemas.Parameters: 1 << 20})
		in.Manifest.Source = schemas.Predicted
		in.Report.Prediction = &schemas.Prediction{Complete: true}
		in.Report.Ranks = []schemas.RankVerdict{{FailedHooks: []schemas.FailedHook{{Hook: "draining", Fatal: fatal}}}}
		p := Predict(in)
		if fatal != (p.Fits == nil) || fatal != (p.Because.Cause == CauseEnded) {
			t.Errorf("fatal %v: fits %v, %+v", fatal, p.Fits, p.Because)
		}
	}
}
