package ingest

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// The journal "devices" was recorded with collect/agent/tests/cases/devices.py 0 2 on a phantom machine of four GPUs,
// with CUDA_VISIBLE_DEVICES=2,0,1. The UUID of a phantom GPU ends with the GPU's number in the machine, counted from 1.
const (
	third  = "GPU-7068616e-746f-6d2d-6770-750000000003" // cuda:0
	second = "GPU-7068616e-746f-6d2d-6770-750000000002" // cuda:2
	first  = "GPU-7068616e-746f-6d2d-6770-750000000001"
)

func visibleGPUs(uuids ...string) (gpus []schemas.GPU) {
	for i, u := range uuids {
		gpus = append(gpus, schemas.GPU{Index: i, UUID: u})
	}
	return gpus
}

// processes.parquet has a row for each device that a process used, with the UUID of that device. The UUID is not that
// GPU's whose NVML index equals the device's CUDA ordinal.
func TestProcessPerDevice(t *testing.T) {
	bare := func(s string) string { return strings.TrimPrefix(s, "GPU-") }
	for name, test := range map[string]struct {
		journal string
		source  string
		gpus    []schemas.GPU
		devices []int32
		want    []string
		warning string
	}{
		"by UUID": {"devices", schemas.Measured, visibleGPUs(first, second, third), []int32{0, 2},
			[]string{third, second}, ""},
		"in capitals": {"devices", schemas.Measured, visibleGPUs(strings.ToUpper(second), third),
			[]int32{0, 2}, []string{third, strings.ToUpper(second)}, ""},
		"not in NVML's list": {"devices", schemas.Measured, visibleGPUs(first, third), []int32{0, 2},
			[]string{third, bare(second)}, "device 2: NVML lists no GPU with its UUID"},
		"no NVML": {"devices", schemas.Measured, nil, []int32{0, 2}, []string{bare(third), bare(second)},
			""},
		"phantom": {"devices", schemas.Predicted, visibleGPUs(""), []int32{0, 2},
			[]string{bare(third), bare(second)}, ""},
		"older agent, one GPU": {"vanilla", schemas.Measured, visibleGPUs("GPU-x"), []int32{0}, []string{"GPU-x"}, ""},
		"older agent, two GPUs": {"vanilla", schemas.Measured, visibleGPUs("GPU-x", "GPU-y"), []int32{0}, []string{""},
			"device 0: which of 2 GPUs it is was not recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, test.journal)
			m, err := schemas.ReadManifest(dir)
			if err != nil {
				t.Fatal(err)
			}
			m.Source, m.GPUs = test.source, test.gpus
			if err := schemas.WriteManifest(dir, m); err != nil {
				t.Fatal(err)
			}
			r := run(t, dir)
			var devices []int32
			var uuids []string
			for _, p := range rows(t, schemas.Processes, dir) {
				if p.Ended != "exit" || p.EndNS <= p.StartNS || p.PID == 0 {
					t.Errorf("%+v", p)
				}
				devices, uuids = append(devices, p.Device), append(uuids, p.UUID)
			}
			if !slices.Equal(devices, test.devices) || !slices.Equal(uuids, test.want) {
				t.Errorf("devices %v, %v; want %v, %v", devices, uuids, test.devices, test.want)
			}
			if len(r.Devices) != len(test.devices) { // a device that was visible but unused has no verdict
				t.Errorf("%d verdicts: %+v", len(r.Devices), r.Devices)
			}
			for _, d := range r.Devices {
				if d.Verdict != schemas.Exact || d.MissingEvents != 0 {
					t.Errorf("%+v", d)
				}
			}
			if test.warning != "" != hasWarning(r, "samples cannot be told") || test.warning != "" &&
				!hasWarning(r, test.warning) {
				t.Errorf("warnings %q", r.Warnings)
			}
		})
	}
}

// A process that used no device still has a row in processes.parquet.
func TestProcessWithoutDevice(t *testing.T) {
	marks, frames := unpacked(t, "devices")
	frames = rewritten(t, frames, func(_ int, f spool.Frame) []byte {
		switch f.Type {
		case spool.FrameAllocator, spool.FrameCheckpoint, spool.FrameDevices, spool.FrameTags:
			return nil
		}
		return f.Payload
	})
	dir := live(t, 1<<30, marks, frames)
	run(t, dir)
	if p := rows(t, schemas.Processes, dir); len(p) != 1 || p[0].UUID != "" || p[0].Ended != "exit" {
		t.Errorf("%+v", p)
	}
}
