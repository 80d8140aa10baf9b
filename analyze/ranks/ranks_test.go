package ranks

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// layered returns the tables of a rank. The rank has parameters of an embedding and activations of two layers, and each
// block has the line that requested it.
func layered(layers ...int64) schemas.Tables {
	parts := []fixture.Part{{Category: schemas.Parameters, Bytes: 1000, Module: 1, Slack: 24}}
	for i, bytes := range layers {
		parts = append(parts, fixture.Part{Category: schemas.Activations, Bytes: bytes, Module: int64(2 + i)})
	}
	in := fixture.PeakOf(parts...)
	in.Modules = []schemas.Module{{ID: 1, Path: "embed", Class: "Embedding"}, {ID: 2, Path: "blocks.0.mlp", Class: "MLP"},
		{ID: 3, Path: "blocks.1.mlp", Class: "MLP"}, {Path: "blocks.0", Class: "Block", ID: 4},
		{Path: "blocks.1", Class: "Block", ID: 5}}
	in.Lines = []schemas.Line{{Line: 1, File: "train.py", Number: 31}, {Line: 2, File: "train.py", Number: 40}}
	for i := range in.Allocations {
		in.Allocations[i].Line = 1
		if in.Allocations[i].Module > 1 {
			in.Allocations[i].Line = 2
		}
	}
	in.Phases = []schemas.Phase{{Step: 0, Phase: schemas.PhaseForward, EndSeq: int64(len(parts))}}
	return in
}

// The outlier is the rank with more memory than the others. The parts of its difference sum to the difference.
func TestOutlier(t *testing.T) {
	run, err := Of(fixture.Ranks(layered(100, 100), layered(5100, 4900), layered(100, 90), layered(100, 100)))
	if err != nil || run.Outlier == nil {
		t.Fatalf("%+v, %v", run, err)
	}
	o := run.Outlier
	if o.Rank != 1 || o.Beside.Rank != 0 || o.DeltaBytes != 9800 || *o.PartsBytes != 9800 {
		t.Errorf("%+v", o)
	}
	for _, c := range []struct {
		what      string
		got, want []Part
	}{
		{"categories", o.Categories, []Part{{Category: schemas.Activations, Bytes: 10000, BesideBytes: 200,
			DeltaBytes: 9800}}},
		{"modules", o.Modules, []Part{{Category: schemas.Activations, Module: "blocks.*", Bytes: 10000, BesideBytes: 200,
			DeltaBytes: 9800}}},
		{"lines", o.Lines, []Part{{Line: "train.py:40", Bytes: 10000, BesideBytes: 200, DeltaBytes: 9800}}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.what, c.got, c.want)
		}
	}
	if p := run.Ranks[1]; !p.Apart || *p.AllocatedBytes != 11024 || *p.OthersMedianBytes != 1224 || *p.Step != 0 ||
		*p.Phase != schemas.PhaseForward {
		t.Errorf("%+v", p)
	}
	for _, r := range []int{0, 2, 3} {
		if run.Ranks[r].Apart {
			t.Errorf("rank %d lies apart: %+v", r, run.Ranks[r])
		}
	}
}

// The peak of a rank lies apart if it differs by 1 % or more from the median of the other ranks' peaks. If there are
// only two ranks, only the higher peak can lie apart. If there are more, a lower peak can lie apart, too.
func TestApart(t *testing.T) {
	for _, c := range []struct {
		peaks []int64
		far   int32 // -1 if no rank lies apart
		delta int64
	}{
		{[]int64{1000}, -1, 0},
		{[]int64{1000, 1000}, -1, 0},
		{[]int64{1000, 1009}, -1, 0},
		{[]int64{1000, 1010}, 1, 10},
		{[]int64{1010, 1000}, 0, 10},
		{[]int64{1000, 1000, 400}, 2, -600},
		{[]int64{1000, 1400, 1000, 600}, 1, 400},
		{[]int64{0, 0, 50}, 2, 50},
	} {
		var of []schemas.Tables
		for _, peak := range c.peaks {
			of = append(of, fixture.PeakOf(fixture.Part{Category: schemas.Activations, Bytes: peak}))
		}
		run, err := Of(fixture.Ranks(of...))
		switch o := run.Outlier; {
		case err != nil || len(run.Ranks) != len(c.peaks):
			t.Errorf("%v: %+v, %v", c.peaks, run, err)
		case c.far < 0 && o == nil:
		case o == nil || o.Rank != c.far || o.DeltaBytes != c.delta || *o.PartsBytes != c.delta:
			t.Errorf("%v: %+v", c.peaks, o)
		}
	}
}

// For a bare run, torch's counters show that a rank lies apart, but not in which categories.
func TestBareRanks(t *testing.T) {
	in := schemas.Tables{Manifest: &schemas.Manifest{RunID: "bare", Bare: true, Status: schemas.StatusOK},
		Report: &schemas.IngestReport{}}
	for r, peak := range []int64{100, 300} {
		in.Report.Devices = append(in.Report.Devices, schemas.DeviceVerdict{Rank: int32(r),
			TorchPeakAllocatedBytes: &peak})
	}
	run, err := Of(in)
	if o := run.Outlier; err != nil || o == nil || o.Rank != 1 || o.DeltaBytes != 200 || o.PartsBytes != nil ||
		len(o.Categories) != 0 || run.Ranks[1].Step != nil {
		t.Errorf("%+v, %v", run, err)
	}
}

// For any blocks, the parts by category, by module and by line each sum to the difference between the ranks.
func TestPartsSum(t *testing.T) {
	apart := 0
	for seed := range uint64(60) {
		in, _ := fixture.RandomRun(rand.New(rand.NewPCG(seed, 33)))
		run, err := Of(in)
		if err != nil {
			t.Fatal(err)
		}
		o := run.Outlier
		if o == nil {
			continue
		}
		apart++
		for kind, parts := range map[string][]Part{"categories": o.Categories, "modules": o.Modules, "lines": o.Lines} {
			var sum int64
			for _, p := range parts {
				sum += p.DeltaBytes
				if p.DeltaBytes != p.Bytes-p.BesideBytes || p.DeltaBytes == 0 {
					t.Errorf("seed %d: %s: %+v", seed, kind, p)
				}
			}
			if sum != *o.PartsBytes || sum != o.DeltaBytes {
				t.Errorf("seed %d: %s sum to %d, the difference is %d and %d", seed, kind, sum, *o.PartsBytes, o.DeltaBytes)
			}
		}
	}
	if apart == 0 {
		t.Error("no run had a device apart")
	}
}
