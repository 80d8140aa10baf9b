package memory

import (
	"slices"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// Moved compares two breakdowns device by device. Moved leaves out equal values, and devices that only one of the
// breakdowns has.
func TestMoved(t *testing.T) {
	device := func(rank int32, allocated, activations, other int64) DeviceBreakdown {
		return DeviceBreakdown{Device: "cuda:0", Rank: rank, AllocatedBytes: allocated, Categories: []CategoryBytes{
			{Category: schemas.Parameters, Bytes: 5}, {Category: schemas.Activations, Bytes: activations},
			{Category: schemas.Other, Bytes: other}}}
	}
	before := []DeviceBreakdown{device(0, 100, 60, 40), device(1, 100, 60, 40), device(2, 1, 1, 0)}
	after := []DeviceBreakdown{device(0, 100, 60, 40), device(1, 90, 80, 10), device(3, 1, 1, 0)}
	var got []string
	for _, m := range Moved(before, after) {
		category := "peak"
		if m.Category != nil {
			category = *m.Category
		}
		if m.Rank != 1 || m.Device != "cuda:0" {
			t.Errorf("%s of rank %d, %s", category, m.Rank, m.Device)
		}
		if got = append(got, category); category == schemas.Activations && (m.BeforeBytes != 60 || m.AfterBytes != 80) {
			t.Errorf("%+v", m)
		}
	}
	if !slices.Equal(got, []string{"peak", schemas.Activations, schemas.Other}) {
		t.Errorf("%q", got)
	}
	if same := Moved(before, before); same == nil || len(same) != 0 {
		t.Errorf("of the same: %+v", same)
	}
}
