package gate

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/analyze/fixture"
	"github.com/dpsight/dpsight/schemas"
)

// PlacesOf divides the bytes at the peak by category, module and line. PlacesOf sums the blocks with the same category,
// module and line, and counts their slack separately.
func TestPlacesOfAPeak(t *testing.T) {
	in := fixture.PeakOf(fixture.Part{Category: schemas.Activations, Bytes: 3000, Module: 3},
		fixture.Part{Category: schemas.Activations, Bytes: 4000, Module: 3, Slack: 96},
		fixture.Part{Category: schemas.Activations, Bytes: 500, Module: 2},
		fixture.Part{Category: schemas.Gradients, Bytes: 1000, Module: 2},
		fixture.Part{Category: schemas.Noise, Bytes: 1}) // too small for a place
	in.Lines = []schemas.Line{{Line: 1, File: "train.py", Number: 12, Function: "Block.forward"}}
	for i := range in.Allocations[:3] {
		in.Allocations[i].Line = 1
	}
	got := PlacesOf(in)
	want := []schemas.BaselinePlace{
		{Category: schemas.Activations, Module: "mlp", File: "train.py", Line: 12, Function: "Block.forward", Bytes: 7000},
		{Category: schemas.Gradients, Module: "head", Bytes: 1000},
		{Category: schemas.Activations, Module: "head", File: "train.py", Line: 12, Function: "Block.forward", Bytes: 500},
		{Category: schemas.Slack, Module: "mlp", File: "train.py", Line: 12, Function: "Block.forward", Bytes: 96}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Locate takes a line for the same line if it moved within its function. A line with fewer bytes than in the baseline
// is no growth.
func TestLocate(t *testing.T) {
	at := func(module string, line, bytes int64) schemas.BaselinePlace {
		return schemas.BaselinePlace{Category: schemas.Activations, Module: module, File: "train.py", Line: line,
			Function: "forward", Bytes: bytes}
	}
	now := []schemas.BaselinePlace{at("a", 14, 700), at("b", 20, 300), at("b", 21, 50), at("c", 9, 90), at("d", 9, 10)}
	var x Experiment
	x.Locate([]schemas.BaselinePlace{at("a", 12, 500), at("b", 20, 100), at("c", 9, 100)}, now)
	var got []int64
	for i := range x.Places {
		got = append(got, x.Places[i].Line, x.Places[i].Grew())
	}
	if want := []int64{20, 250, 14, 200, 9, 10}; !slices.Equal(got, want) {
		t.Errorf("lines and growth %v, want %v", got, want)
	}
	x.Locate(nil, now)
	if len(x.Places) != 4 || x.Places[0].BaselineBytes != nil || x.Places[0].Grew() != 700 {
		t.Errorf("beside a baseline without places: %+v", x.Places)
	}
}
