package identity

import (
	"slices"
	"testing"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// If runs have the same name, their labels add the parameters that differ. Without such parameters, labels add the
// start time, and otherwise the run id.
func TestLabelsTellByParameters(t *testing.T) {
	at := func(sec int) time.Time { return time.Date(2026, 11, 21, 10, 0, sec, 0, time.UTC) }
	for _, c := range []struct {
		what    string
		ids     []Identity
		started []time.Time
		want    []string
	}{
		{"names that differ", []Identity{{Name: "a", Params: map[string]any{"batch_size": 8}},
			{Name: "b", Params: map[string]any{"batch_size": 16}}}, nil, []string{"a", "b"}},
		{"a parameter", []Identity{{Name: "g", Params: map[string]any{"batch_size": 8.0}},
			{Name: "g", Params: map[string]any{"batch_size": 16.0}}}, []time.Time{at(0), at(1)},
			[]string{"g (batch_size=8)", "g (batch_size=16)"}},
		{"the GPU's memory", []Identity{{Name: "g", Params: map[string]any{"gpu_memory": float64(300 << 20)}},
			{Name: "g", Params: map[string]any{"gpu_memory": int64(24<<30 + 1)}},
			{Name: "g", Params: map[string]any{"gpu_memory": "much"}}}, nil, []string{"g (gpu_memory=300 MiB)",
			"g (gpu_memory=25769803777)", "g (gpu_memory=much)"}},
		{"what another parameter settles is not said",
			[]Identity{{Name: "g", Params: map[string]any{"batch_size": 8, "physical_batch_size": 8}},
				{Name: "g", Params: map[string]any{"batch_size": 16, "physical_batch_size": 16}}}, nil,
			[]string{"g (batch_size=8)", "g (batch_size=16)"}},
		{"two parameters", []Identity{{Name: "g", Params: map[string]any{"batch_size": 8, "model": "mlp"}},
			{Name: "g", Params: map[string]any{"batch_size": 16, "model": "mlp"}},
			{Name: "g", Params: map[string]any{"batch_size": 8, "model": "lm"}}}, nil,
			[]string{"g (model=mlp, batch_size=8)", "g (model=mlp, batch_size=16)", "g (model=lm, batch_size=8)"}},
		{"one lacks it", []Identity{{Name: "g"}, {Name: "g", Params: map[string]any{"model": "mlp"}}}, nil,
			[]string{"g", "g (model=mlp)"}},
		{"a parameter, then the time", []Identity{{Name: "g", Params: map[string]any{"batch_size": 8}},
			{Name: "g", Params: map[string]any{"batch_size": 8}},
			{Name: "g", Params: map[string]any{"batch_size": 16}}}, []time.Time{at(0), at(1), at(1)},
			[]string{"g (batch_size=8) 2026-11-21 10:00:00", "g (batch_size=8) 2026-11-21 10:00:01",
				"g (batch_size=16)"}},
		{"the id", []Identity{{Name: "g", RunID: "x"}, {Name: "g", RunID: "y"}}, []time.Time{at(0), at(0)},
			[]string{"g x", "g y"}},
		{"confidence tells nothing apart", []Identity{{Name: "g", Source: schemas.Predicted, Confidence: schemas.Close,
			Params: map[string]any{"batch_size": 8}},
			{Name: "g", Source: schemas.Predicted, Confidence: schemas.ExactExpected,
				Params: map[string]any{"batch_size": 16}}}, nil, []string{"g (batch_size=8)", "g (batch_size=16)"}},
		{"what the mark tells apart", []Identity{{Name: "g", Source: schemas.Measured},
			{Name: "g", Source: schemas.Imported}}, nil, []string{"g", "g"}},
	} {
		for i := range c.ids {
			c.ids[i].Status = schemas.StatusOK
		}
		if got := Labels(c.ids, c.started); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
