package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
)

// The printed table of a ladder indents each rung below the rung that contains it, and has one row for parts that
// cannot be separated. CSV and JSON have the rungs' names and bytes.
func TestLadderTables(t *testing.T) {
	bytesOf := func(n int64) *int64 { n *= mib; return &n }
	in := func(s string) *string { return &s }
	doc := ladder.NewDocument(ladder.Run{Identity: identity.Identity{RunID: "r", Name: "ghost",
		Source: "measured"}, GPUs: []ladder.GPULadder{{GPU: in("NVIDIA H200"),
		Devices: []ladder.Device{{Device: "cuda:0"}},
		Moments: []ladder.Moment{{At: ladder.DevicePeak, DriverReserveBytes: bytesOf(615),
			OtherProcesses: new(int64(2)), Rungs: []ladder.Rung{
				{Rung: "device_used", Bytes: bytesOf(2000), How: "sampled"}, {Rung: "driver+context+modules",
					In: in("device_used"), Bytes: bytesOf(500), How: "difference"},
				{Rung: "reserved", In: in("device_used"), Bytes: bytesOf(1500), How: "replayed"},
				{Rung: "allocated", In: in("reserved"), Bytes: bytesOf(1000), How: "replayed"},
				{Rung: "cached", In: in("reserved"), Bytes: bytesOf(500), How: "difference"}}}},
		OutsideTorch: []ladder.OutsideTorch{{Bytes: 400 * mib}, {Bytes: 500 * mib, Step: new(int64(0)),
			Phase: in("forward")}}}}},
		ladder.Run{Identity: identity.Identity{RunID: "s", Name: "idle"}, Warnings: []string{"nothing ran"}})
	print := func(format string) string {
		var b bytes.Buffer
		if err := table.Write(&b, format, report.LadderTables(doc)...); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(b.String(), "\u00a0", "·")
	}
	text := print("table")
	for _, want := range []string{"ghost, cuda:0 (NVIDIA H200), at the device's peak\n", "\ndevice used (NVML) ",
		"\n··driver, charged to no process, CUDA context and modules ", "\n··reserved by torch ",
		"\n····allocated ", "1,000.00   50.0  replayed\n",
		"note: NVML's device used excludes the driver's reserve, 615.00 MiB",
		"note: other processes on the GPU: 2\n",
		"each time it changed: 400.00; 500.00 (step 0, forward)\n", "idle: no moment to explain\n",
		"note: nothing ran\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if csv := print("csv"); strings.Count(csv, "run_id") != 1 ||
		!strings.Contains(csv, ",driver+context+modules,device_used,524288000,25,difference\n") {
		t.Errorf("CSV:\n%s", csv)
	}
	if json := print("json"); strings.Count(json, `"schema"`) != 1 {
		t.Errorf("JSON:\n%s", json)
	}
}
