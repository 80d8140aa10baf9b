//go:build linux

package collect

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpsight/dpsight/collect/nvml"
	"github.com/dpsight/dpsight/schemas"
)

type ours map[int]bool

func (o ours) Ours(pid int) bool { return o[pid] }

// sample runs a sampler for some virtual time.
func sample(t *testing.T, gpu nvml.Device, interval, d time.Duration) (*gpuSampler, []schemas.Sample) {
	t.Helper()
	out := &segmentWriter[schemas.Sample]{dir: t.TempDir(), table: schemas.Samples}
	g := newGPUSampler("r", []nvml.Device{gpu}, interval, ours{7: true, 8: true}, out)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		g.run(ctx)
	})
	return g, out.rows
}

func TestGPUSampler(t *testing.T) {
	gpu := newFakeGPU()
	gpu.quiet = 1
	a, b, c := int64(100), int64(20), int64(3)
	gpu.processes = []nvml.Process{{PID: 7, Bytes: &a}, {PID: 8, Bytes: &b}, {PID: 9, Bytes: &c}}
	g, rows := sample(t, gpu, 10*time.Millisecond, time.Minute+5*time.Millisecond)
	// The sampler reads once at the start, at each tick up to the first one after the end, and once more.
	if len(rows) != 6003 || g.samples != 6003 || g.missed != 0 {
		t.Fatalf("%d rows, %d samples, %d missed", len(rows), g.samples, g.missed)
	}
	energies := 0
	for i, r := range rows {
		if r.UsedBytes != min(int64(i), 1)<<30 || r.ReservedBytes != 500<<20 || r.MemoryAPI != 2 || r.RunID != "r" {
			t.Fatalf("row %d: %+v", i, r)
		}
		// Figures other than memory are read every 100 ms and at the end.
		if gauged := i%10 == 9 || i == 6002; gauged != (r.ProcessBytes != nil) {
			t.Fatalf("row %d: %+v", i, r)
		} else if gauged && (*r.ProcessBytes != 120 || *r.SMPercent != 93 || r.TemperatureC != nil) || i >= 9 &&
			r.OtherProcesses != 1 {
			t.Fatalf("row %d: %+v", i, r)
		}
		if r.EnergyMJ != nil {
			energies++
		}
		if i > 0 && r.TimeNS-rows[i-1].TimeNS != int64(10*time.Millisecond) {
			t.Fatalf("row %d comes %d ns after the one before", i, r.TimeNS-rows[i-1].TimeNS)
		}
	}
	if energies != 61 {
		t.Errorf("%d readings of energy in a minute", energies)
	}
	if g.used.Load() != 1<<30 {
		t.Errorf("used %d", g.used.Load())
	}
}

// If the driver answers slowly, the sampler reads figures other than memory less often. The sampler counts the ticks
// that it missed.
func TestSlowDriver(t *testing.T) {
	gpu := newFakeGPU()
	gpu.quiet, gpu.delay = 1, 2*time.Millisecond
	g, rows := sample(t, gpu, 10*time.Millisecond, 10*time.Second)
	full := 0
	for _, r := range rows {
		if r.SMPercent != nil {
			full++
		}
	}
	if len(rows) < 1000 || full > len(rows)/20 || full < 5 {
		t.Errorf("%d of %d readings are full", full, len(rows))
	}
	if g.missed != 0 {
		t.Errorf("%d ticks missed", g.missed)
	}
	gpu = newFakeGPU()
	gpu.quiet, gpu.delay = 1, 35*time.Millisecond
	g, rows = sample(t, gpu, 10*time.Millisecond, 10*time.Second)
	if g.missed == 0 || g.missed+int64(len(rows)) < 998 {
		t.Errorf("%d rows and %d missed ticks in 1000", len(rows), g.missed)
	}
}

// After a single slow answer of the driver, the sampler still reads the gauges as often as before. An earlier version
// then read them less often for a minute, so some recordings in examples have no gauges for their steps.
func TestDriverStallsOnce(t *testing.T) {
	gpu := newFakeGPU()
	gpu.quiet, gpu.stall = 1, 110*time.Millisecond
	_, rows := sample(t, gpu, 10*time.Millisecond, 10*time.Second)
	last, full := int64(0), 0
	for _, r := range rows {
		if r.SMPercent == nil {
			continue
		}
		if d := time.Duration(r.TimeNS - last); last > 0 && d > 250*time.Millisecond {
			t.Errorf("no gauges for %s", d)
		}
		last = r.TimeNS
		full++
	}
	if full < 95 {
		t.Errorf("%d readings of the gauges in 10 s", full)
	}
}

// Until the experiment takes device memory, the sampler reads the gauges once a second. From then on it reads them
// every 100 ms.
func TestQuietDevice(t *testing.T) {
	gpu := newFakeGPU()
	gpu.quiet = 255
	_, rows := sample(t, gpu, 10*time.Millisecond, 5*time.Second)
	var quiet, after []int
	for i, r := range rows {
		if r.SMPercent != nil && r.UsedBytes == 0 {
			quiet = append(quiet, i)
		} else if r.SMPercent != nil {
			after = append(after, i)
		}
	}
	if !slices.Equal(quiet, []int{9, 109, 209}) {
		t.Errorf("gauges of the quiet device in rows %v", quiet)
	}
	if len(after) < 20 || after[0] != 259 || after[1] != 269 {
		t.Errorf("gauges once memory is in use in rows %v", after)
	}
	if e := rows[259].EnergyMJ; e == nil {
		t.Error("the energy was not read when memory came into use")
	}
	if e := rows[len(rows)-1].EnergyMJ; e == nil {
		t.Error("the energy was not read at the end")
	}
}

func TestMergeSegments(t *testing.T) {
	dir := t.TempDir()
	w := &segmentWriter[schemas.HostSample]{dir: dir, table: schemas.HostSamples}
	var want []int64
	for i := range int64(25) {
		w.add(schemas.HostSample{RunID: "r", TimeNS: i, RSSBytes: i * 4096, Processes: 1})
		want = append(want, i)
		if i%10 == 9 {
			if err := w.flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	if err := w.flush(); err != nil { // there are no more rows to write
		t.Fatal(err)
	}
	segments, _ := filepath.Glob(filepath.Join(dir, "host-*.parquet"))
	if len(segments) != 3 || w.written != 25 {
		t.Fatalf("segments %v, %d rows", segments, w.written)
	}
	first, _ := os.ReadFile(segments[0])
	os.WriteFile(filepath.Join(dir, "host-000004.parquet.partial"), []byte("PAR1"), 0o600)
	os.WriteFile(filepath.Join(dir, "run.json.partial"), []byte("{"), 0o600)

	read := func() []int64 {
		rows, err := schemas.HostSamples.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		var times []int64
		for _, r := range rows {
			times = append(times, r.TimeNS)
		}
		return times
	}
	if err := MergeSegments(dir); err != nil {
		t.Fatal(err)
	}
	if got := read(); !slices.Equal(got, want) {
		t.Errorf("merged %v", got)
	}
	// If a merge was interrupted after it renamed the merged file and before it removed the segments, the next merge
	// counts no row twice.
	os.WriteFile(segments[0], first, 0o600)
	if err := MergeSegments(dir); err != nil {
		t.Fatal(err)
	}
	if got := read(); !slices.Equal(got, want) {
		t.Errorf("merged again %v", got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	// If a segment is damaged, the merge fails and removes no segment.
	other := t.TempDir()
	os.WriteFile(filepath.Join(other, "host-000001.parquet"), first, 0o600)
	os.WriteFile(filepath.Join(other, "host-000002.parquet"), first[:len(first)/2], 0o600)
	if err := MergeSegments(other); err == nil {
		t.Error("a damaged segment was merged")
	}
	if left, _ := os.ReadDir(other); len(left) != 2 {
		t.Errorf("left after a failed merge: %v", left)
	}
}

// The test measures the collector's CPU time when it samples every 10 ms and the device answers at once. The experiment
// sleeps for COST_S seconds, 3 by default.
func TestCollectorCost(t *testing.T) {
	e := experiment(t, "sleep "+cmp.Or(os.Getenv("COST_S"), "3"))
	m := run(t, e).Manifest
	share := float64(m.Collector.CPUNS) / float64(m.End.Sub(m.Start))
	if m.Collector.SetupCPUNS == nil || m.Collector.SealCPUNS == nil {
		t.Fatalf("%+v", m.Collector)
	}
	t.Logf("%.2f %% of a core, %d samples, %d missed; %.1f ms before and %.1f ms after the experiment", 100*share,
		m.Collector.Samples, m.Collector.MissedTicks,
		float64(*m.Collector.SetupCPUNS)/1e6, float64(*m.Collector.SealCPUNS)/1e6)
	// The three figures count no CPU time twice: together they are no more than what this process used, and half a
	// second for the supervisor.
	if all := m.Collector.CPUNS + *m.Collector.SetupCPUNS + *m.Collector.SealCPUNS; *m.Collector.SetupCPUNS <= 0 ||
		*m.Collector.SealCPUNS <= 0 || all > int64(processCPU())+5e8 {
		t.Errorf("%+v", m.Collector)
	}
	// dpsight claims at most 2 % of a core, which the tests of examples check. In a run of three seconds, the
	// collector's CPU time is mostly from the start, and a busy machine and the race detector cost more. The bound of
	// 20 % therefore only catches a collector that spins.
	if share > 0.2 {
		t.Errorf("the collector took %.1f %% of a core", 100*share)
	}
}
