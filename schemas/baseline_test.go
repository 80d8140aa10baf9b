package schemas

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestBaselineDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "main.json")
	key, torch, bytes, tokens := "c58e", "2.11.0", int64(1)<<40+1, 3406.2770482866044
	want := &Baseline{Version: "0.1.0", Experiments: []BaselineExperiment{
		{Key: &key, Name: "ghost", Params: map[string]any{"batch_size": 8.0, "method": "ghost"}, Source: Measured,
			Status: StatusOK, Runs: 5, PeakBytes: &bytes,
			Categories: map[Category]int64{Parameters: bytes - 1, Slack: 1},
			PhasePeaks: map[string]int64{PhaseForward: 7},
			StepMS:     &BaselineTime{Median: 4.5, Low: 4.25, High: 5, Clock: "gpu"},
			TokensPerS: &tokens, Versions: Versions{Torch: &torch}},
		{Name: "oom", Source: Predicted, Status: StatusOOM, Reason: "CUDA out of memory"},
	}}
	if err := WriteBaseline(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadBaseline(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v, %v", got, want, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `"categories": null`) ||
		strings.Contains(string(text), `"peak_bytes": 0`) {
		t.Errorf("what is not known must be null: %s, %v", text, err)
	}
	for content, said := range map[string]string{"": "not a JSON document", "[]": "not a JSON document",
		`{"schema":"dpsight.run/1"}`: "schema dpsight.run/1 is not one that this " +
			"dpsight reads (dpsight.baseline/2)",
		`{"schema":"dpsight.baseline/1","experiments":[{"name":"a"}]}`: "experiment 1 has no name or no status",
		`{"schema":"dpsight.baseline/1","experiments":7}`:              "main.json: "} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadBaseline(path); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: %v, want %q", content, err, said)
		}
	}
}
