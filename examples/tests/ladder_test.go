package examples_test

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// For each headline run, the rungs of the ladder sum to the byte to the highest device memory that NVML sampled.
// Memory outside torch (the CUDA context and loaded kernels) is equal to the byte for all methods, in recorded and
// bare runs.
func TestLadders(t *testing.T) {
	runs, _, err := store.Open(headline).Runs()
	if err != nil {
		t.Fatal(err)
	}
	var least, most int64
	lower := 0
	for _, r := range runs {
		tab, err := store.Load(
			r, schemas.WantMemory|schemas.WantTimes|schemas.WantEvents|schemas.WantSamples|schemas.WantClock)
		if err != nil {
			t.Fatal(err)
		}
		in := *tab
		run, err := ladder.Of(in)
		if err != nil || len(run.GPUs) != 1 {
			t.Fatalf("%s: %+v, %v", r.Manifest.Name, run, err)
		}
		moments := run.GPUs[0].Moments
		want := []string{ladder.DevicePeak, ladder.AllocatorPeak}
		switch {
		case r.Manifest.Bare:
			want = want[:1]
		case moments[0].Rung(schemas.Categories[0]) == nil: // the device's peak is in a bare step
			want = []string{ladder.DevicePeak, ladder.RecordedPeak, ladder.AllocatorPeak}
			lower++
			if of := &moments[1]; of.Rung(schemas.Categories[0]) == nil ||
				*of.Rung(ladder.RungDeviceUsed).Bytes >= *moments[0].Rung(ladder.RungDeviceUsed).Bytes {
				t.Errorf("%s: %+v", r.Manifest.Name, of.Rungs)
			}
		}
		var got []string
		for i := range moments {
			got = append(got, moments[i].At)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s: moments %q, want %q", r.Manifest.Name, got, want)
		}
		var top int64
		for _, s := range in.Samples {
			top = max(top, s.UsedBytes)
		}
		if used := moments[0].Rung(ladder.RungDeviceUsed).Bytes; *used != top {
			t.Errorf("%s: device used %d, NVML saw %d", r.Manifest.Name, *used, top)
		}
		for _, m := range moments {
			sums := map[string]int64{}
			for _, rung := range m.Rungs {
				if rung.Bytes == nil || *rung.Bytes < 0 {
					t.Fatalf("%s, %s: %+v", r.Manifest.Name, m.At, rung)
				}
				if rung.In != nil {
					sums[*rung.In] += *rung.Bytes
				}
			}
			for rung, sum := range sums {
				if whole := *m.Rung(rung).Bytes; whole != sum {
					t.Errorf("%s, %s: %s has %d bytes, the rungs in it %d", r.Manifest.Name, m.At, rung, whole, sum)
				}
			}
			outside := m.Rung("context+modules+non_torch")
			if outside == nil {
				t.Fatalf("%s, %s: context and modules are not told from the rest: %+v", r.Manifest.Name, m.At, m.Rungs)
			}
			if least == 0 || *outside.Bytes < least {
				least = *outside.Bytes
			}
			most = max(most, *outside.Bytes)
			if m.At != ladder.AllocatorPeak {
				continue
			}
			v := in.Report.Devices[0]
			if got := *m.Rung(ladder.RungAllocated).Bytes; got != v.PeakAllocatedBytes || v.Verdict != schemas.Exact {
				t.Errorf("%s: allocated %d at the peak of %d (%s)", r.Manifest.Name, got, v.PeakAllocatedBytes,
					v.Verdict)
			}
		}
	}
	if lower == 0 {
		t.Error("no run has its device's peak in a bare step")
	}
	if least < 500<<20 || most > 1<<30 || most != least {
		t.Errorf("context and modules take from %d to %d bytes", least, most)
	}
}

// Recording takes no device memory. In each pair of a recorded and a bare run, memory outside torch is equal to the
// byte, and so is the highest reserved in the recorded steps and in the bare run. The recorded run makes further steps
// after the recorded ones. If these steps reserve no more memory, device used is equal in both runs too. If they
// reserve more, as with ghost, the recorded run's device used is higher by exactly these bytes.
func TestInstrumentTakesNoDeviceMemory(t *testing.T) {
	same := 0
	for _, folder := range []string{headline, pairs} {
		full, bare := recorded(t, folder)
		for m := range bare {
			var used, outside [2]int64
			for i, e := range []*example{full[m], bare[m]} {
				run, err := ladder.Of(e.in)
				if err != nil || len(run.GPUs) != 1 || run.GPUs[0].Moments[0].At != ladder.DevicePeak {
					t.Fatalf("%s/%s: %+v, %v", folder, e.Manifest.Name, run, err)
				}
				top := &run.GPUs[0].Moments[0]
				used[i], outside[i] = *top.Rung(ladder.RungDeviceUsed).Bytes,
					*top.Rung("context+modules+non_torch").Bytes
			}
			if outside[0] != outside[1] {
				t.Errorf("%s/%s: outside torch lie %d bytes in the instrumented run, %d in the bare one", folder, m,
					outside[0], outside[1])
			}
			a, b := device(t, full[m]), device(t, bare[m])
			if a.PeakReservedBytes != *b.TorchPeakReservedBytes {
				t.Errorf("%s/%s: %d bytes are reserved in the recorded steps, %d in the bare run", folder, m,
					a.PeakReservedBytes, *b.TorchPeakReservedBytes)
			}
			if n, m := len(full[m].in.Steps), len(bare[m].in.Steps); n <= m {
				t.Errorf("%d and %d steps: the instrumented run has no further ones", n, m)
			}
			later := *a.TorchPeakReservedBytes - a.PeakReservedBytes
			if used[0]-used[1] != later {
				t.Errorf("%s/%s: device used is %d and %d bytes, and further steps reserved %d more", folder, m,
					used[0], used[1], later)
			}
			if later == 0 {
				same++
			}
		}
	}
	if same < 4 {
		t.Errorf("device used can be compared as it is in %d pairs", same)
	}
}
