package confidence

import (
	"reflect"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// exact returns a prediction without any doubt, so its level is exact expected.
func exact() (*schemas.Manifest, *schemas.IngestReport) {
	return &schemas.Manifest{Source: schemas.Predicted, Status: schemas.StatusOK, Profile: new("h200"),
			GPUs:        []schemas.GPU{{Name: "NVIDIA H200"}},
			Environment: &schemas.Environment{Torch: "2.11.0+cu130"},
			Phantom: &schemas.Phantom{Checked: true, CheckedTorch: "2.11.0", Assumed: []string{},
				MemoryBytes: 1 << 30, Addresses: "h200", DefaultAddresses: "h200", ComputeCapability: "9.0"}},
		&schemas.IngestReport{Prediction: &schemas.Prediction{Complete: true},
			Devices: []schemas.DeviceVerdict{{Verdict: schemas.Exact, PeakAllocatedBytes: 1 << 20}}}
}

// Assess lists each doubt about a prediction, and each doubt limits the level of confidence. The level of the
// prediction is the lowest of these.
func TestConfide(t *testing.T) {
	unchecked := func(m *schemas.Manifest) {
		m.Phantom.Checked, m.Phantom.CheckedTorch, m.Phantom.Assumed, m.Phantom.ComputeCapability = false, "",
			[]string{"context_bytes"}, "7.5"
		m.GPUs[0].Name = "Tesla T4"
	}
	reads := []schemas.Counted{{Name: "train.py:10", Count: 3}, {Name: "train.py:12", Count: 1}}
	read := Reason{Kind: UnknownRead, Places: reads}
	never := Reason{Kind: DeviceUnchecked, Name: "Tesla T4"}
	for _, c := range []struct {
		what   string
		change func(*schemas.Manifest, *schemas.IngestReport)
		level  string
		want   []Reason // if nil, the test checks only the level
	}{
		{"nothing", func(*schemas.Manifest, *schemas.IngestReport) {}, schemas.ExactExpected,
			[]Reason{{Kind: NothingUnknown}, {Kind: NothingEstimated},
				{Kind: Compared, Name: "NVIDIA H200", Other: "2.11.0"}}},
		{"the built-in loop's own read", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.UnknownReads = []schemas.Counted{{Name: "dpsight_experiments/loop.py:106", Count: 1}}
		}, schemas.ExactExpected, nil},
		{"memory ran out", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Status = schemas.StatusOOM
		}, schemas.ExactExpected, nil},
		{"reads", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.UnknownReads = reads
		}, schemas.Close,
			[]Reason{read}},
		{"memory ran out, and the script went on", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.OOMs = []schemas.OOM{{}}
		}, schemas.Close,
			[]Reason{{Kind: CaughtOOM}}},
		{"a workspace failed, and torch went on", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.OOMs = []schemas.OOM{{Raised: new(false)}}
		}, schemas.Close,
			[]Reason{{Kind: AbsorbedOOM}}},
		{"memory ran out, and the script did not go on", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Status, r.OOMs = schemas.StatusOOM, []schemas.OOM{{Fatal: true}}
		}, schemas.ExactExpected, nil},
		{"a script of the host's", func(_ *schemas.Manifest, r *schemas.IngestReport) { r.Devices = nil },
			schemas.Indicative, []Reason{{Kind: Nothing}}},
		{"a bound", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Guesses = []schemas.Counted{{Name: "nonzero", Count: 2}}
		}, schemas.Close, []Reason{{Kind: SizeByValues, Names: []string{"nonzero"}}}},
		{"reads, one of them decided", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Phantom.Decisions = []schemas.Decision{{Place: "train.py:10 in torch/functional.py:7", Error: "ValueError"}}
			r.Prediction.UnknownReads = reads
		}, schemas.Close, []Reason{{Kind: UnknownRead, Places: reads[1:]},
			{Kind: Decided, Name: "train.py:10 in torch/functional.py:7", Other: "ValueError"}}},
		{"a read that was decided", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Phantom.Decisions = []schemas.Decision{{Place: "train.py:10", Error: "AssertionError"}}
			r.Prediction.UnknownReads = reads[:1]
		}, schemas.Close, []Reason{{Kind: Decided, Name: "train.py:10", Other: "AssertionError"}}},
		{"finite values, as older versions noted them", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Assumptions = []schemas.Counted{{Name: "isnan", Count: 2}}
			r.Prediction.AssumedAt = reads
			r.Prediction.Notes = []string{"values that nobody knows were taken for finite by isnan"}
		}, schemas.Close, []Reason{{Kind: TakenForFinite, Places: reads, Names: []string{"isnan"}}}},
		{"finite values", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Assumptions = []schemas.Counted{{Name: "isnan", Count: 2}}
		}, schemas.Close, []Reason{{Kind: TakenForFinite, Names: []string{"isnan"}}}},
		{"an estimate", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Notes = []string{"cuDNN batch normalisation: the workspace is an estimate"}
		}, schemas.Close, []Reason{{Kind: Noted,
			Name: "cuDNN batch normalisation: the workspace is an estimate"}}},
		{"a refusal", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Notes = []string{"cufftMakePlanMany cannot be answered without a device: the call fails"}
		}, schemas.Indicative, []Reason{{Kind: Noted,
			Name: "cufftMakePlanMany cannot be answered without a device: the call fails"}}},
		{"an extension", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Notes = []string{"kernels of libmine.so ran as no-ops: the values that they compute are unknown"}
		}, schemas.Indicative, []Reason{{Kind: Noted, Name: "kernels of libmine.so ran as no-ops: the values that " +
			"they compute are unknown"}}},
		{"torch.compile", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Compiled = true
		}, schemas.Close, []Reason{{Kind: CodeGenerated}}},
		{"batches drawn anew", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Privacy, m.Environment.Seed = &schemas.Privacy{Poisson: new(true)}, new(int64(798936206860814937))
		}, schemas.Close, []Reason{{Kind: DrawnAnew}}},
		{"batches drawn anew, by a seed that does not fit", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Privacy = &schemas.Privacy{Poisson: new(true)}
		}, schemas.Close, []Reason{{Kind: DrawnAnew}}},
		{"batches drawn by a seed", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Privacy, m.Environment.Seed = &schemas.Privacy{Poisson: new(true)}, new(int64(0))
		}, schemas.ExactExpected, nil},
		{"batches of one size", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Privacy = &schemas.Privacy{Poisson: new(false)}
		}, schemas.ExactExpected, nil},
		{"another torch", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Environment.Torch = "2.15.0"
		}, schemas.Close, []Reason{{Kind: TorchUnchecked, Name: "2.15.0", Other: "2.11.0"}}},
		{"another profile", func(m *schemas.Manifest, _ *schemas.IngestReport) { unchecked(m) }, schemas.Close,
			[]Reason{never}},
		{"another profile, and reads", func(m *schemas.Manifest, r *schemas.IngestReport) {
			unchecked(m)
			r.Prediction.UnknownReads = reads
		}, schemas.Indicative,
			[]Reason{read, never}},
		{"another profile, and an estimate", func(m *schemas.Manifest, r *schemas.IngestReport) {
			unchecked(m)
			r.Prediction.Notes = []string{"an estimate"}
		}, schemas.Indicative,
			[]Reason{{Kind: Noted, Name: "an estimate"}, never}},
		{"other places", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Phantom.Addresses = "up"
		}, schemas.Close, []Reason{{Kind: OtherAddresses, Name: "up", Other: "h200"}}},
		{"places that matter", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Band = &schemas.PlacementBand{Allocated: [2]int64{1 << 20, 2 << 20}}
		}, schemas.Close, []Reason{{Kind: AddressesMatter, Bytes: [2]int64{1 << 20, 2 << 20}}}},
		{"places that decide", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Phantom.Placements = []schemas.Placement{{Addresses: "up", Status: schemas.StatusOK},
				{Addresses: "7", Status: schemas.StatusOOM}}
		}, schemas.Close, []Reason{{Kind: AddressesDecide, Name: "7", Other: "oom"}}},
		{"places that were not tried to an end", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Phantom.Placements = []schemas.Placement{{Addresses: "7", Status: schemas.StatusTimeout}}
		}, schemas.Close, []Reason{{Kind: AddressesDecide, Name: "7", Other: "timeout"}}},
		{"garbage, and a run that did not end in time", func(m *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Garbage = &schemas.Garbage{CollectedBytes: 5}
			m.Phantom.Collections = []schemas.Collection{{When: schemas.GarbageAtOnce, Status: schemas.StatusTimeout}}
		}, schemas.Close, []Reason{{Kind: GarbageDecides, Name: "at once", Other: "timeout"}}},
		{"out of time, with all that follows from it", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Status, r.Prediction.Complete = schemas.StatusTimeout, false
			m.Phantom.Placements = []schemas.Placement{{Addresses: "7", Status: schemas.StatusOK}}
			r.Prediction.Garbage = &schemas.Garbage{CollectedBytes: 5}
			m.Phantom.Collections = []schemas.Collection{ // older versions of dpsight made collections like these
				{When: schemas.GarbageAtOnce, Status: schemas.StatusTimeout, PeakAllocatedBytes: 1},
				{When: schemas.GarbageNever, Status: schemas.StatusOK, PeakAllocatedBytes: 1 << 40}}
		}, schemas.Indicative, []Reason{{Kind: EndedEarly, Name: "timeout"},
			{Kind: GarbageCollected, Name: "timeout", Bytes: [2]int64{5}}}},
		{"out of time before anything", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Status, r.Prediction.Complete, r.Devices, m.Environment = schemas.StatusTimeout, false, nil, nil
			m.Collector.Uninjected = []string{"python x.py"}
		}, schemas.Indicative, []Reason{{Kind: EndedEarly, Name: "timeout"}}},
		{"places that do not", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Band = &schemas.PlacementBand{Allocated: [2]int64{1 << 20, 1 << 20},
				Reserved: [2]int64{1 << 20, 2 << 20}}
		}, schemas.ExactExpected, nil},
		{"a process that was killed", func(m *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Complete = false
		}, schemas.Indicative, []Reason{{Kind: Unsaid}}},
		{"memory ran out, and another process was killed", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Status, r.Prediction.Complete = schemas.StatusOOM, false
		}, schemas.Indicative, []Reason{{Kind: Unsaid}}},
		{"a process without the agent", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Collector.Uninjected = []string{"python -I x.py"}
		}, schemas.Indicative,
			[]Reason{{Kind: Unheard, Count: 1}}},
		{"a torch that is not known", func(m *schemas.Manifest, _ *schemas.IngestReport) { m.Environment = nil },
			schemas.Close, []Reason{{Kind: TorchUnknown, Other: "2.11.0"}}},
		{"another profile, and torch.compile", func(m *schemas.Manifest, r *schemas.IngestReport) {
			unchecked(m)
			r.Prediction.Compiled = true
		}, schemas.Indicative,
			[]Reason{{Kind: CodeGenerated}, never}},
		{"a crash", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Status = schemas.StatusFailed
		}, schemas.Indicative, []Reason{{Kind: EndedEarly, Name: "failed"}}},
		{"lost events", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Devices[0].Verdict = schemas.Lossy
		}, schemas.Indicative, []Reason{{Kind: EventsMissing}}},
		{"an older version", func(_ *schemas.Manifest, r *schemas.IngestReport) { r.Prediction = nil },
			schemas.Indicative, []Reason{{Kind: OldVersion}}},
		{"an attached process", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Attached, r.Prediction = &schemas.Attached{}, nil
		}, schemas.Indicative, []Reason{{Kind: AttachedLate}}},
	} {
		m, r := exact()
		c.change(m, r)
		got := Assess(m, r)
		if got.Level != c.level || len(got.Reasons) == 0 || c.want != nil && !reflect.DeepEqual(got.Reasons, c.want) {
			t.Errorf("%s: %s, because %+v", c.what, got.Level, got.Reasons)
		}
		var never []UncheckedKind
		for _, u := range got.Unchecked {
			never = append(never, u.Kind)
		}
		if m.Phantom.Checked != (never == nil) || never != nil && !slices.Equal(never, []UncheckedKind{AttentionKernels,
			CuDNNEngines, CuBLASWorkspaces, SegmentAddresses, BF16, PropertiesAssumed}) {
			t.Errorf("%s: never compared: %q", c.what, never)
		}
	}
	m, r := exact()
	if m.Source = schemas.Measured; Assess(m, r) != nil {
		t.Error("a measured run is no prediction")
	}
	m.Source = schemas.Predicted
	if Assess(m, nil) != nil {
		t.Error("of a run without tables nothing can be said")
	}
}

// Of returns the stored confidence and does not assess the prediction again. The confidence is stored in the ingest
// report, or with the tables if it was assessed when the run was read.
func TestConfidenceIsTheReports(t *testing.T) {
	m, r := exact()
	in := schemas.Tables{Manifest: m, Report: r}
	if c := Of(&in); c != nil {
		t.Errorf("a level without reasons: %+v", c)
	}
	r.Prediction.Confidence = &schemas.Confidence{Level: schemas.Indicative, Reasons: []string{"said then"}}
	if c := Of(&in); c.Level != schemas.Indicative || c.Reasons[0] != "said then" {
		t.Errorf("%+v", c)
	}
	in.Confidence = &schemas.Confidence{Level: schemas.Close, Reasons: []string{"said when it was read"}}
	if c := Of(&in); c.Level != schemas.Close || c.Reasons[0] != "said when it was read" {
		t.Errorf("%+v", c)
	}
}

// A prediction with the level close shows the errors of the recorded cases that have the same doubts. If its only
// doubts are unknown reads, it shows the errors of recorded cases with this doubt alone. If no recorded case has its
// doubts, it shows no errors.
func TestKnownErrors(t *testing.T) {
	reads := func(p *schemas.Prediction) { p.UnknownReads = []schemas.Counted{{Name: "train.py:10", Count: 3}} }
	compiled := func(p *schemas.Prediction) { p.Compiled = true }
	noting := func(note string) func(*schemas.Prediction) {
		return func(p *schemas.Prediction) { p.Notes = append(p.Notes, note) }
	}
	engines := noting("cuDNN chooses its engines without a device: the workspace of a convolution, or of attention, can " +
		"be another than on one")
	ranks := noting("NCCL: peers are copies of this rank, and NCCL's own buffers are not counted")
	// An older version of dpsight wrote this text; the current version writes the next one.
	read := noting("a kernel read from the device what no kernel had computed, such as the size of its output: it got " +
		"zeros")
	reading := noting("a kernel read from the device a value that no kernel had computed, such as the size of its " +
		"output: it got zeros")
	pool := noting("cudaMallocAsync: its memory pool is not modelled, each request is counted by itself")
	for _, c := range []struct {
		what    string
		changes []func(*schemas.Prediction)
		torch   string
		want    []string // the doubts whose recorded cases are shown
	}{
		{what: "nothing"},
		{"reads", []func(*schemas.Prediction){reads}, "", []string{schemas.DoubtReads}},
		{"reads and engines", []func(*schemas.Prediction){reads, engines}, "", []string{schemas.DoubtCuDNN}},
		{"engines and ranks", []func(*schemas.Prediction){ranks, engines}, "",
			[]string{schemas.DoubtCuDNN, schemas.DoubtRanks}},
		{"kernels' reads of an older version", []func(*schemas.Prediction){read}, "", []string{schemas.DoubtReads}},
		{"kernels' reads", []func(*schemas.Prediction){reading}, "", []string{schemas.DoubtReads}},
		{"compiled", []func(*schemas.Prediction){reads, compiled}, "", []string{schemas.DoubtCompile}},
		{what: "a library that no recording is of", changes: []func(*schemas.Prediction){reads, pool}},
		{"another torch", []func(*schemas.Prediction){reads}, "2.15.0", nil},
	} {
		m, r := exact()
		for _, change := range c.changes {
			change(r.Prediction)
		}
		if c.torch != "" {
			m.Environment.Torch = c.torch
		}
		var got []string
		for _, k := range Assess(m, r).Known {
			got = append(got, k.Doubt)
			// docs/accuracy.md has the table of recorded errors
			if k.Allocated.Of == 0 || !reflect.DeepEqual(k, *knownByKind()[k.Doubt]) {
				t.Errorf("%s: %+v", c.what, k)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	m, r := exact()
	m.Phantom.Checked = false
	if a := Assess(m, r); a.Level != schemas.Close || a.Known != nil {
		t.Errorf("on a device that was never compared: %+v", a)
	}
}
