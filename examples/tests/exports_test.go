package examples_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/report/export"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// dpsight's exports give other programs the figures that dpsight prints: pandas and polars read them from Feather
// files, TensorBoard from an event file, and Python from a trace.
func TestExportsAreReadByOthers(t *testing.T) {
	testkit.Rest(t)
	python := os.Getenv("DPSIGHT_TEST_NOTEBOOKS_PYTHON")
	if python == "" {
		t.Skip("DPSIGHT_TEST_NOTEBOOKS_PYTHON is unset: it names a Python with what is in requirements/notebooks.txt")
	}
	runs, err := filepath.Glob(headline + "/*-ghost-*")
	if err != nil || len(runs) == 0 {
		t.Fatal(runs, err)
	}
	manifest, err := schemas.ReadManifest(runs[0])
	if err != nil {
		t.Fatal(err)
	}
	in, err := store.Load(store.Run{Dir: runs[0], ID: manifest.RunID, Manifest: manifest}, export.Tables)
	if err != nil {
		t.Fatal(err)
	}
	run, err := export.Of(*in)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	for format, folder := range map[string]string{export.Perfetto: "", export.TensorBoard: "tensorboard",
		export.Arrow: "arrow"} {
		if _, err := export.WriteAll(filepath.Join(out, folder), run.Files(format, "ghost", nil), false); err != nil {
			t.Fatal(err)
		}
	}
	text, err := exec.Command(python, "tests/read_exports.py", out).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, err.(*exec.ExitError).Stderr)
	}
	type numbers = map[string]int64
	var found struct {
		Arrow struct {
			Rows           int
			Highest, Steps numbers
		}
		TensorBoard struct {
			Scalars map[string]map[string]float64
		}
		Perfetto struct{ Highest, Slices numbers }
	}
	if err := json.Unmarshal(text, &found); err != nil {
		t.Fatal(err)
	}
	d := run.Devices[0]
	whole, err := timeline.CategoryTimeline(*in, timeline.EventRange{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := numbers{"allocated": whole.Devices[0].PeakBytes}
	for _, c := range whole.Devices[0].Categories {
		want[c.Category] = c.MaxBytes
	}
	for name, bytes := range want {
		if a, p := found.Arrow.Highest[name+"_bytes"], found.Perfetto.Highest[name]; a != bytes || p != bytes {
			t.Errorf("%s: %d in Feather, %d in the trace, want %d", name, a, p, bytes)
		}
	}
	if found.Arrow.Rows != len(d.Timeline.Points) || found.Perfetto.Slices["steps"] != int64(len(d.Steps)) ||
		found.Perfetto.Slices["phases"] != int64(len(d.Phases)) {
		t.Errorf("%d rows for %d events; slices %v for %d steps and %d phases", found.Arrow.Rows, len(d.Timeline.Points),
			found.Perfetto.Slices, len(d.Steps), len(d.Phases))
	}
	peaks := found.TensorBoard.Scalars["memory/peak_MiB"]
	if len(peaks) == 0 || len(peaks) != len(found.Arrow.Steps) {
		t.Errorf("%d peaks of steps in TensorBoard, %d in Feather", len(peaks), len(found.Arrow.Steps))
	}
	for step, mib := range peaks {
		if want := float32(float64(found.Arrow.Steps[step]) / (1 << 20)); float32(mib) != want {
			t.Errorf("step %s: %f MiB in TensorBoard, %f in Feather", step, mib, want)
		}
	}
}
