package plates

// Ladder shows all memory in use on a device, including memory outside tensors: stacked bars of bytes, with the rungs
// of dpsight ladder.
type Ladder struct {
	Bars  []Bar // bars with segments whose keys are in [RungKeys], in that order
	Names map[string]string
}

// RungKeys are the keys of the rungs that have a colour, from allocated to memory that other processes use.
var RungKeys = []string{"allocated", "pending_free", "cached", "non_torch", "context", "modules", "driver",
	"driver_reserve", "other_processes"}

// rungs are the colours of rungs: from blue-greys for the allocator's to greys for memory outside torch. Categories
// have other colours.
var rungs = map[string]colour{
	"allocated":       both("dpsAllocated", 0x4f6a83),
	"pending_free":    both("dpsPendingFree", 0x8299ae),
	"cached":          both("dpsCached", 0xc3ceda),
	"non_torch":       both("dpsNonTorch", 0xa8926a),
	"context":         both("dpsContext", 0xd9c7a8),
	"modules":         both("dpsModules", 0x8c7a5a),
	"driver":          both("dpsDriver", 0x8a8a8a),
	"driver_reserve":  both("dpsDriverReserve", 0xb5b5b5),
	"other_processes": both("dpsOtherProcesses", 0xd6d6d6),
}

// Draw draws the figure.
func (f Ladder) Draw(s Style) (*Drawing, error) {
	return drawBars(s, bars{all: f.Bars, names: f.Names, colours: rungs, order: RungKeys, unit: unitOfBytes,
		axis: "Device memory in use", change: percent})
}

// A LargestRow is the largest batch of one method that fits on one device.
type LargestRow struct {
	Label  string
	Device string
	Batch  float64
	State  State // state: OOM if no batch fits; Bounded if the search ended before it reached a limit
}

// Largest shows the largest batch that fits, by method and device.
type Largest struct {
	Rows     []LargestRow
	Baseline string // the label that the others are compared with on each device; "" for none
	Axis     string // title of the axis; "" means "Largest batch"
}

var batches = map[string]colour{"batch": phases["backward"]}

// Draw draws the figure.
func (f Largest) Draw(s Style) (*Drawing, error) {
	axis := f.Axis
	if axis == "" {
		axis = "Largest batch"
	}
	var all []Bar
	for _, r := range f.Rows {
		all = append(all, Bar{Label: r.Label, Group: r.Device, State: r.State,
			Segments: []Segment{{"batch", r.Batch}}})
	}
	return drawBars(s, bars{all: all, baseline: f.Baseline, colours: batches, order: []string{"batch"},
		unit: Count.unitOf, axis: axis, change: ratio(2)})
}

// Trend shows a value over revisions of the code, oldest first.
type Trend struct {
	Revisions []string
	Series    []Series
	Axis      string
	Quantity  Quantity
}

// Draw draws the figure.
func (f Trend) Draw(s Style) (*Drawing, error) {
	at := make([]float64, len(f.Revisions))
	for i := range at {
		at[i] = float64(i)
	}
	return Lines{Axis: f.Axis, Quantity: f.Quantity,
		Panels: []LinesPanel{{X: "Revision", At: at, Names: f.Revisions, Series: f.Series}}}.Draw(s)
}
