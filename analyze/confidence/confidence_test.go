package confidence

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// exact is a prediction that nothing speaks against.
func exact() (*schemas.Manifest, *schemas.IngestReport) {
	return &schemas.Manifest{Source: schemas.Predicted, Status: schemas.StatusOK, Profile: new("h200"),
			GPUs:        []schemas.GPU{{Name: "NVIDIA H200"}},
			Environment: &schemas.Environment{Torch: "2.11.0+cu130"},
			Phantom: &schemas.Phantom{Checked: true, CheckedTorch: "2.11.0", Assumed: []string{},
				MemoryBytes: 1 << 30, Addresses: "h200", DefaultAddresses: "h200", ComputeCapability: "9.0"}},
		&schemas.IngestReport{Prediction: &schemas.Prediction{Complete: true},
			Devices: []schemas.DeviceVerdict{{Verdict: schemas.Exact, PeakAllocatedBytes: 1 << 20}}}
}

// Each thing that speaks against a prediction is named and holds the level to what it is worth; the worst decides.
func TestConfide(t *testing.T) {
	unchecked := func(m *schemas.Manifest) {
		m.Phantom.Checked, m.Phantom.CheckedTorch, m.Phantom.Assumed, m.Phantom.ComputeCapability = false, "",
			[]string{"context_bytes"}, "7.5"
		m.GPUs[0].Name = "Tesla T4"
	}
	reads := []schemas.Counted{{Name: "train.py:10", Count: 3}, {Name: "train.py:12", Count: 1}}
	for _, c := range []struct {
		what   string
		change func(*schemas.Manifest, *schemas.IngestReport)
		level  string
		says   []string // in the reasons, in order
	}{
		{"nothing", func(*schemas.Manifest, *schemas.IngestReport) {}, schemas.ExactExpected,
			[]string{"nothing was read", "no library was estimated", "predictions for this kind of device (NVIDIA " +
				"H200) under torch 2.11.0 were compared"}},
		{"the built-in loop's own read", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.UnknownReads = []schemas.Counted{{Name: "dpsight_experiments/loop.py:106", Count: 1}}
		}, schemas.ExactExpected, nil},
		{"memory ran out", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Status = schemas.StatusOOM
		}, schemas.ExactExpected, nil},
		{"reads", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.UnknownReads = reads
		}, schemas.Close,
			[]string{"in 2 places, 4 times"}},
		{"memory ran out, and the script went on", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.OOMs = []schemas.OOM{{}}
		}, schemas.Close,
			[]string{"where one fails depends on what a context takes"}},
		{"a workspace failed, and torch went on", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.OOMs = []schemas.OOM{{Raised: new(false)}}
		}, schemas.Close,
			[]string{"torch tried workspaces that there was no memory for"}},
		{"memory ran out, and the script did not go on", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Status, r.OOMs = schemas.StatusOOM, []schemas.OOM{{Fatal: true}}
		}, schemas.ExactExpected, nil},
		{"a script of the host's", func(_ *schemas.Manifest, r *schemas.IngestReport) { r.Devices = nil },
			schemas.Indicative, []string{"nothing was allocated"}},
		{"a bound", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Guesses = []schemas.Counted{{Name: "nonzero", Count: 2}}
		}, schemas.Close, []string{"what nonzero gives depends on values"}},
		{"finite values", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Assumptions = []schemas.Counted{{Name: "isnan", Count: 2}}
		}, schemas.Close, []string{"are finite (isnan), and they were taken to be"}},
		{"an estimate", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Notes = []string{"cuDNN batch normalisation: the workspace is an estimate"}
		}, schemas.Close, []string{"the workspace is an estimate"}},
		{"a refusal", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Notes = []string{"cufftMakePlanMany cannot be answered without a device: it fails"}
		}, schemas.Indicative, []string{"cannot be answered"}},
		{"an extension", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Notes = []string{"kernels of libmine.so ran as no-ops: what depends on what they compute is " +
				"not known"}
		}, schemas.Indicative, []string{"libmine.so ran as no-ops"}},
		{"torch.compile", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Compiled = true
		}, schemas.Close, []string{"torch.compile"}},
		{"batches drawn anew", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Privacy, m.Environment.Seed = &schemas.Privacy{Poisson: new(true)}, new(int64(798936206860814937))
		}, schemas.Close, []string{"draws the sizes of batches at random, and no seed was seen"}},
		{"batches drawn anew, by a seed that does not fit", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Privacy = &schemas.Privacy{Poisson: new(true)}
		}, schemas.Close, []string{"draws the sizes of batches at random"}},
		{"batches drawn by a seed", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Privacy, m.Environment.Seed = &schemas.Privacy{Poisson: new(true)}, new(int64(0))
		}, schemas.ExactExpected, nil},
		{"batches of one size", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Privacy = &schemas.Privacy{Poisson: new(false)}
		}, schemas.ExactExpected, nil},
		{"another torch", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Environment.Torch = "2.15.0"
		}, schemas.Close, []string{"under torch 2.15.0"}},
		{"another profile", func(m *schemas.Manifest, _ *schemas.IngestReport) { unchecked(m) }, schemas.Close,
			[]string{"ever compared with this kind of device (Tesla T4)"}},
		{"another profile, and reads", func(m *schemas.Manifest, r *schemas.IngestReport) {
			unchecked(m)
			r.Prediction.UnknownReads = reads
		}, schemas.Indicative,
			[]string{"in 2 places, 4 times", "ever compared with this kind of device (Tesla T4)"}},
		{"another profile, and an estimate", func(m *schemas.Manifest, r *schemas.IngestReport) {
			unchecked(m)
			r.Prediction.Notes = []string{"an estimate"}
		}, schemas.Indicative,
			[]string{"an estimate", "ever compared"}},
		{"other places", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Phantom.Addresses = "up"
		}, schemas.Close, []string{"policy up"}},
		{"places that matter", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Band = &schemas.PlacementBand{Allocated: [2]int64{1 << 20, 2 << 20}}
		}, schemas.Close, []string{"from 1.00 MiB to 2.00 MiB"}},
		{"places that decide", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Phantom.Placements = []schemas.Placement{{Addresses: "up", Status: schemas.StatusOK},
				{Addresses: "7", Status: schemas.StatusOOM}}
		}, schemas.Close, []string{"policy 7 the run ended otherwise: oom"}},
		{"places that do not", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Band = &schemas.PlacementBand{Allocated: [2]int64{1 << 20, 1 << 20},
				Reserved: [2]int64{1 << 20, 2 << 20}}
		}, schemas.ExactExpected, nil},
		{"a process that was killed", func(m *schemas.Manifest, r *schemas.IngestReport) {
			r.Prediction.Complete = false
		}, schemas.Indicative, []string{"did not live to say"}},
		{"memory ran out, and another process was killed", func(m *schemas.Manifest, r *schemas.IngestReport) {
			m.Status, r.Prediction.Complete = schemas.StatusOOM, false
		}, schemas.Indicative, []string{"did not live to say"}},
		{"a process without the agent", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Collector.Uninjected = []string{"python -I x.py"}
		}, schemas.Indicative,
			[]string{"1 process loaded torch and trained nothing, or ran without the agent"}},
		{"a torch that is not known", func(m *schemas.Manifest, _ *schemas.IngestReport) { m.Environment = nil },
			schemas.Close, []string{"which torch made it is not known"}},
		{"another profile, and torch.compile", func(m *schemas.Manifest, r *schemas.IngestReport) {
			unchecked(m)
			r.Prediction.Compiled = true
		}, schemas.Indicative,
			[]string{"torch.compile", "ever compared"}},
		{"a crash", func(m *schemas.Manifest, _ *schemas.IngestReport) {
			m.Status = schemas.StatusFailed
		}, schemas.Indicative, []string{"ended early (failed)"}},
		{"lost events", func(_ *schemas.Manifest, r *schemas.IngestReport) {
			r.Devices[0].Verdict = schemas.Lossy
		}, schemas.Indicative, []string{"events are missing"}},
		{"an older version", func(_ *schemas.Manifest, r *schemas.IngestReport) { r.Prediction = nil },
			schemas.Indicative, []string{"did not keep"}},
	} {
		m, r := exact()
		c.change(m, r)
		got := Assess(m, r)
		text := strings.Join(got.Reasons, "\n")
		if got.Level != c.level || len(got.Reasons) == 0 || c.says != nil && len(got.Reasons) != len(c.says) {
			t.Errorf("%s: %s, because\n%s", c.what, got.Level, text)
			continue
		}
		for i, want := range c.says {
			if !strings.Contains(got.Reasons[i], want) || strings.HasPrefix(got.Reasons[i], "1 1") {
				t.Errorf("%s: no %q in %q", c.what, want, got.Reasons[i])
			}
		}
		if all := strings.Join(got.Unchecked, "; "); m.Phantom.Checked != (all == "") ||
			!m.Phantom.Checked && (!strings.Contains(all, "SDPA") || !strings.Contains(all, "bf16") ||
				!strings.Contains(all, "context_bytes")) {
			t.Errorf("%s: never compared: %q", c.what, all)
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

// What was stored is what is shown: a report that was judged is not judged again.
func TestConfidenceIsTheReports(t *testing.T) {
	m, r := exact()
	in := schemas.Tables{Manifest: m, Report: r}
	if c := Of(&in); c.Level != schemas.ExactExpected {
		t.Errorf("%+v", c)
	}
	r.Prediction.Confidence = &schemas.Confidence{Level: schemas.Indicative, Reasons: []string{"said then"}}
	if c := Of(&in); c.Level != schemas.Indicative || c.Reasons[0] != "said then" {
		t.Errorf("%+v", c)
	}
}

// Beside each close prediction stands how far off the recorded cases of its doubts were: those of what it read alone
// where it has no other doubt, and nothing where no recording is of such a case.
func TestKnownError(t *testing.T) {
	reads := func(p *schemas.Prediction) { p.UnknownReads = []schemas.Counted{{Name: "train.py:10", Count: 3}} }
	engines := func(p *schemas.Prediction) {
		p.Notes = append(p.Notes, "cuDNN chooses its engines without a device: the workspace of a convolution, or of "+
			"attention, can be another than on one")
	}
	ranks := func(p *schemas.Prediction) {
		p.Notes = append(p.Notes, "NCCL: peers are copies of this rank, and NCCL's own buffers are not counted")
	}
	pool := func(p *schemas.Prediction) {
		p.Notes = append(p.Notes, "cudaMallocAsync: its memory pool is not modelled, each request is counted by itself")
	}
	// How many there are is the table's: docs/accuracy.md is held to the recordings.
	of := func(kind, off string) string {
		e := knownByKind()[kind].Allocated
		return fmt.Sprintf("of %d scripts with %s %d came to the byte in allocated%s, ", e.Of, kind, e.Exact, off)
	}
	engined := of(schemas.DoubtCuDNN, " (off by at most 56.7 %: hinge in docs/accuracy.md)")
	for _, c := range []struct {
		what    string
		changes []func(*schemas.Prediction)
		torch   string
		says    []string // the beginnings of its sentences; nil is null
	}{
		{what: "nothing"},
		{"reads", []func(*schemas.Prediction){reads}, "", []string{of(schemas.DoubtReads, "")}},
		{"reads and engines", []func(*schemas.Prediction){reads, engines}, "", []string{engined}},
		{"engines and ranks", []func(*schemas.Prediction){ranks, engines}, "",
			[]string{engined, of(schemas.DoubtRanks, " (off by at most 2.0 %: zero in docs/accuracy.md)")}},
		{"compiled", []func(*schemas.Prediction){reads, func(p *schemas.Prediction) { p.Compiled = true }}, "",
			[]string{of(schemas.DoubtCompile, "")}},
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
		got := Assess(m, r).KnownError
		if got == nil || c.says == nil {
			if got != nil || c.says != nil {
				t.Errorf("%s: %v, want %q", c.what, got, c.says)
			}
			continue
		}
		said := strings.Split(*got, "; ")
		if len(said) != len(c.says) {
			t.Errorf("%s: %q", c.what, said)
			continue
		}
		for i, want := range c.says {
			if !strings.HasPrefix(said[i], want) {
				t.Errorf("%s: %q, want %q", c.what, said[i], want)
			}
		}
	}
	m, r := exact()
	m.Phantom.Checked = false
	if c := Assess(m, r); c.Level != schemas.Close || c.KnownError != nil {
		t.Errorf("on a device that was never compared: %+v", c)
	}
}
