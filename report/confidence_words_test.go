package report

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/confidence"
	"github.com/dpsight/dpsight/schemas"
)

// Ingest reports store these sentences on confidence, so the sentences must not change.
func TestConfidenceWords(t *testing.T) {
	reads := []schemas.Counted{{Name: "train.py:7", Count: 1}, {Name: "loss.py:12", Count: 3}}
	const fails = ": which request fails depends on the CUDA context, and on what else runs on the device"
	for _, c := range []struct {
		reason confidence.Reason
		want   string
	}{
		{confidence.Reason{Kind: confidence.NothingUnknown}, "the script read no values that the phantom GPU does " +
			"not compute"},
		{confidence.Reason{Kind: confidence.NothingEstimated}, "no library was estimated or left out"},
		{confidence.Reason{Kind: confidence.Compared, Name: "NVIDIA H200", Other: "2.11.0"},
			"predictions for this kind of device (NVIDIA H200) with torch 2.11.0 were compared with recordings"},
		{confidence.Reason{Kind: confidence.Compared, Other: "2.11.0"},
			"predictions for this kind of device with torch 2.11.0 were compared with recordings"},
		{confidence.Reason{Kind: confidence.OldVersion},
			"an older dpsight made it, and did not record what the script read"},
		{confidence.Reason{Kind: confidence.AttachedLate},
			"dpsight.attach() does not record which values the script read from the phantom GPU"},
		{confidence.Reason{Kind: confidence.EndedEarly, Name: "failed"}, "the run ended early (failed)"},
		{confidence.Reason{Kind: confidence.EndedBySteps, Count: 7},
			"the script was ended after step 7: what later steps need is unknown"},
		{confidence.Reason{Kind: confidence.EventsMissing},
			"the recording is incomplete: events are missing"},
		{confidence.Reason{Kind: confidence.PeakBounded},
			"the peak is bounded: the sizes of some blocks from before the recording are unknown"},
		{confidence.Reason{Kind: confidence.Unheard, Count: 2},
			"2 processes loaded torch but trained nothing, or ran without the agent: the peak lacks that memory"},
		{confidence.Reason{Kind: confidence.Unsaid}, "a process ended before it could report what it had read"},
		{confidence.Reason{Kind: confidence.Nothing}, "nothing was allocated on a CUDA device"},
		{confidence.Reason{Kind: confidence.Nothing, Count: 1}, "nothing was allocated on a CUDA device, as far as " +
			"was recorded: 1 process loaded torch but trained nothing, or ran without the agent"},
		{confidence.Reason{Kind: confidence.Nothing, Count: 2}, "nothing was allocated on a CUDA device, as far as " +
			"was recorded: 2 processes loaded torch but trained nothing, or ran without the agent"},
		{confidence.Reason{Kind: confidence.CaughtOOM},
			"the script caught an out-of-memory error and continued" + fails},
		{confidence.Reason{Kind: confidence.AbsorbedOOM},
			"torch had no memory for some workspaces and used smaller ones" + fails},
		{confidence.Reason{Kind: confidence.DrawnAnew}, "Poisson sampling draws batch sizes at random, and the " +
			"script sets no seed: each run has other batches and another peak, on a real GPU too"},
		{confidence.Reason{Kind: confidence.CopiedRead, Places: []schemas.Counted{{Name: "/home/ada/lora/train.py:7",
			Count: 2}}},
			"lora/train.py:7 read values that depend on other ranks, 2 times: dpsight used this rank's value for " +
				"all ranks; if the script branches on them, real GPUs may behave differently"},
		{confidence.Reason{Kind: confidence.UnknownRead, Places: reads[:1]}, "train.py:7 read values that the " +
			"phantom GPU does not compute, 1 time: if the script branches on them, a real GPU may behave " +
			"differently"},
		{confidence.Reason{Kind: confidence.UnknownRead, Places: reads}, "the script read values that the phantom " +
			"GPU does not compute, in 2 places, 4 times (train.py:7, 1 time; loss.py:12, 3 times): if the script " +
			"branches on them, a real GPU may behave differently"},
		{confidence.Reason{Kind: confidence.TakenForFinite, Places: slices.Repeat(reads, 6)}, "the script asked " +
			"whether values are finite or valid that the phantom GPU does not compute, in 12 places, 24 times (" +
			strings.Repeat("train.py:7, 1 time; loss.py:12, 3 times; ", 5) + "and at 2 more places): dpsight " +
			"answered yes"},
		{confidence.Reason{Kind: confidence.Decided, Name: "train.py:7", Other: "AssertionError"}, "train.py:7 " +
			"reads a value that the phantom GPU does not compute. With the usual answer the script failed " +
			"(AssertionError), so dpsight predicted with the other answer"},
		{confidence.Reason{Kind: confidence.CopiedRead, Places: reads[1:]}, "loss.py:12 read values that depend on " +
			"other ranks, 3 times: dpsight used this rank's value for all ranks; if the script branches on them, " +
			"real GPUs may behave differently"},
		{confidence.Reason{Kind: confidence.TakenForFinite, Names: []string{"isnan", "isinf"}}, "the script asked " +
			"whether values are finite that the phantom GPU does not compute (isnan and isinf): dpsight answered " +
			"yes"},
		{confidence.Reason{Kind: confidence.SizeByValues, Names: []string{"nonzero"}},
			"the size of the output of nonzero depends on values: dpsight assumed the largest size"},
		{confidence.Reason{Kind: confidence.Noted, Name: "NCCL: peers are copies"}, "NCCL: peers are copies"},
		{confidence.Reason{Kind: confidence.CodeGenerated}, "the script uses torch.compile: the code that it " +
			"generates depends on timings and caches, which differ on a real GPU"},
		{confidence.Reason{Kind: confidence.DeviceShared, Count: 2}, "2 processes used one device at the same " +
			"time: how their peaks coincide may differ on a real GPU, where steps take time"},
		{confidence.Reason{Kind: confidence.RanksTogether, Ranks: [2]int32{0, 3}, Device: 1}, "rank 0 and rank 3 had " +
			"cuda:1 together and NCCL in use, which refuses two ranks on one device of one host (NCCL_HOSTID): was " +
			`torch.cuda.set_device(int(os.environ["LOCAL_RANK"])) forgotten?`},
		{confidence.Reason{Kind: confidence.DeviceUnchecked, Name: "Tesla T4"},
			"no prediction was ever compared with this kind of device (Tesla T4)"},
		{confidence.Reason{Kind: confidence.TorchUnknown, Other: "2.11.0"}, "its version of torch is unknown, and " +
			"predictions were compared with a device only with torch 2.11.0"},
		{confidence.Reason{Kind: confidence.TorchUnchecked, Name: "2.15.0", Other: "2.11.0"},
			"with torch 2.15.0 no prediction was compared with a device, with torch 2.11.0 they were"},
		{confidence.Reason{Kind: confidence.OtherAddresses, Name: "up", Other: "h200"},
			"the policy up placed segments, not the one of the profile (h200)"},
		{confidence.Reason{Kind: confidence.AddressesDecide, Name: "7", Other: "oom"},
			"with segments placed by the policy 7, the run ended differently: oom"},
		{confidence.Reason{Kind: confidence.AddressesDecide, Name: "7", Other: "timeout"}, "the peak with segments " +
			"placed by the policy 7 is unknown: that run did not end by itself (timeout)"},
		{confidence.Reason{Kind: confidence.AddressesMatter, Bytes: [2]int64{1 << 20, 2 << 20}},
			"the peak allocated depends on where the driver puts segments: from 1.00 MiB to 2.00 MiB"},
		{confidence.Reason{Kind: confidence.GarbageForced, Name: "never"},
			"Python's garbage was collected never, not when Python does it"},
		{confidence.Reason{Kind: confidence.GarbageCollected, Bytes: [2]int64{3 << 20}}, "Python's garbage " +
			"collector freed 3.00 MiB, at moments that vary: dpsight predict without --vary gives the range of the peak"},
		{confidence.Reason{Kind: confidence.GarbageDecides, Name: "at once", Other: "oom"},
			"with Python's garbage collected at once, the run ended differently: oom"},
		{confidence.Reason{Kind: confidence.GarbageDecides, Name: "at once", Other: "timeout"}, "the peak with " +
			"Python's garbage collected at once is unknown: that run did not end by itself (timeout)"},
		{confidence.Reason{Kind: confidence.GarbageCollected, Name: "timeout", Bytes: [2]int64{3 << 20}}, "Python's " +
			"garbage collector freed 3.00 MiB, at moments that vary: a run that ends by itself gives the range " +
			"of the peak"},
		{confidence.Reason{Kind: confidence.GarbageMatters, Bytes: [2]int64{1 << 20, 2 << 20}}, "the peak " +
			"allocated depends on when Python's garbage collector runs: from 1.00 MiB if garbage is collected at " +
			"once to 2.00 MiB if it never is"},
	} {
		if got := confidenceWords(&c.reason); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", c.reason.Kind, got, c.want)
		}
	}
}

// This is a whole assessment of confidence, as the ingest report stores it.
func TestConfidenceDocument(t *testing.T) {
	m := &schemas.Manifest{Source: schemas.Predicted, Status: schemas.StatusOK, GPUs: []schemas.GPU{{Name: "Tesla T4"}},
		Phantom: &schemas.Phantom{Assumed: []string{"context_bytes", "l2_bytes"}, ComputeCapability: "7.5"}}
	r := &schemas.IngestReport{Prediction: &schemas.Prediction{Complete: true},
		Devices: []schemas.DeviceVerdict{{Verdict: schemas.Exact, PeakAllocatedBytes: 1}}}
	judged := func() string {
		text, err := json.Marshal(Confidence(m, r))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got, want := judged(), `{"level":"close","reasons":["no prediction was ever compared with this kind of device `+
		`(Tesla T4)"],"unchecked":["which attention kernels torch uses (SDPA)","cuDNN's engines and their workspaces",`+
		`"the sizes of cuBLAS workspaces","where the driver puts segments","bf16, which compute capability 7.5 has no `+
		`instructions for","properties that no source gives: context_bytes, l2_bytes"],"known_error":null}`; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	m.Phantom = &schemas.Phantom{Checked: true, CheckedTorch: "2.11.0"}
	m.Environment = &schemas.Environment{Torch: "2.11.0+cu130"}
	if got, want := judged(), `{"level":"exact expected","reasons":["the script read no values that the phantom GPU `+
		`does not compute","no library was estimated or left out","predictions for this kind of device (Tesla T4) `+
		`with torch 2.11.0 were `+
		`compared with recordings"],"unchecked":[],"known_error":null}`; got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	if m.Source = schemas.Measured; Confidence(m, r) != nil {
		t.Error("a measured run is no prediction")
	}
}

func TestKnownErrorWords(t *testing.T) {
	known := []confidence.KnownErrors{
		{Doubt: schemas.DoubtCuDNN,
			Allocated: confidence.AccuracyErrors{Of: 12, Exact: 9, Worst: new(0.5661), Where: "hinge"},
			Reserved:  confidence.AccuracyErrors{Of: 12, Exact: 12}},
		{Doubt: schemas.DoubtCompile, Allocated: confidence.AccuracyErrors{Of: 1, Exact: 1},
			Reserved: confidence.AccuracyErrors{Of: 1, Worst: new(0.0), Where: "x"}}}
	want := "of 12 scripts with cuDNN's choices, 9 were predicted to the byte in allocated (off by at most 56.7 %: " +
		"hinge in docs/accuracy.md), 12 in reserved; of 1 script with torch.compile, 1 were predicted to the byte " +
		"in allocated, 0 in reserved (off by at most 0 %: x in docs/accuracy.md)"
	if got := knownErrorWords(known); got == nil || *got != want {
		t.Errorf("%v, want %q", got, want)
	}
	if knownErrorWords(nil) != nil {
		t.Error("nothing is known")
	}
}

// If a report has a stored confidence, ConfidenceOf returns it. A report by an older version of dpsight has none, so
// ConfidenceOf assesses the prediction, even if the report has no prediction.
func TestConfidenceOf(t *testing.T) {
	in := schemas.Tables{Manifest: &schemas.Manifest{Source: schemas.Predicted}, Report: &schemas.IngestReport{}}
	if c := ConfidenceOf(&in); c.Level != schemas.Indicative || !slices.ContainsFunc(c.Reasons, func(s string) bool {
		return strings.HasPrefix(s, "an older dpsight made it, and did not record")
	}) {
		t.Errorf("%+v", c)
	}
	in.Report.Prediction = &schemas.Prediction{Confidence: &schemas.Confidence{Level: schemas.Close,
		Reasons: []string{"said then"}}}
	if c := ConfidenceOf(&in); c.Level != schemas.Close || c.Reasons[0] != "said then" {
		t.Errorf("%+v", c)
	}
	measured := schemas.Tables{Manifest: &schemas.Manifest{Source: schemas.Measured}}
	if ConfidenceOf(&measured) != nil {
		t.Error("a measured run is no prediction")
	}
}
