package figure

import (
	"math"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/schemas"
)

// spiky returns a timeline of n columns. All columns are equal except for a high one and a low one.
func spiky(n int, spike, dip int) *Timeline {
	step := int64(3)
	phase := schemas.PhaseBackward
	t := &timeline.Timeline{Device: "cuda:0", Peak: memory.Moment{Event: int64(spike) + 1, Step: &step, Phase: &phase},
		PeakBytes: 9000}
	s := timeline.TimelineSegment{Step: &step, Phase: phase, EndSeq: int64(n)}
	for i := range n {
		bytes, reserved := int64(1000), int64(2000)
		if i == spike {
			bytes, reserved = 9000, 9500
		}
		low := bytes
		if i == dip {
			low = 10
		}
		parts := make([]int64, len(schemas.Categories))
		parts[schemas.Precedence(schemas.Activations)] = bytes
		s.Columns = append(s.Columns, timeline.TimelineColumn{BeginSeq: int64(i), EndSeq: int64(i + 1), LowBytes: low,
			HighBytes: bytes, HighSeq: int64(i + 1), Parts: parts, ReservedBytes: reserved})
	}
	t.Segments = []timeline.TimelineSegment{s}
	t.StepMaxima = []timeline.CategoryMaximum{{Category: schemas.Activations, MaxBytes: 9000, AtPeakBytes: 9000,
		At: t.Peak, Parts: s.Columns[spike].Parts}}
	return &Timeline{Label: "spiky", PeakBytes: &t.PeakBytes, Timeline: t}
}

// A spike of one event is drawn to its full height and marked at its place, even if its pixel stands for many events.
func TestSpikesSurviveTheirPixel(t *testing.T) {
	const n, spike, dip = 20_011, 12_345, 777
	m := spiky(n, spike, dip)
	l := m.layout()
	st := l.columns()
	if len(st.high) > int(plotWidth)+1 {
		t.Errorf("%d columns on %v pixels", len(st.high), plotWidth)
	}
	var high, reserved int64
	low := int64(math.MaxInt64)
	at := 0
	for i := range st.high {
		if st.high[i] > high {
			high, at = st.high[i], i
		}
		low, reserved = min(low, st.low[i]), max(reserved, st.reserved[i])
	}
	if high != 9000 || low != 10 || reserved != 9500 {
		t.Errorf("drawn from %d to %d, reserved to %d", low, high, reserved)
	}
	if l.peakX < st.x[at]-1 || l.peakX > st.x[at+1]+1 {
		t.Errorf("the peak is marked at %v, its column is from %v to %v", l.peakX, st.x[at], st.x[at+1])
	}
	c, err := m.draw(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range c.Shapes {
		if strings.HasPrefix(shape.What, "allocated") && math.Abs(shape.Box.Y0-l.peakY) > 1e-9 {
			t.Errorf("the area reaches %v, the peak is at %v", shape.Box.Y0, l.peakY)
		}
	}
	if got := strings.Join(l.title, " "); got != "spiky, step 3: peak 8.79 KiB in backward" {
		t.Errorf("the peak is called %q", got)
	}
	if bad := c.Misplaced(); bad != nil {
		t.Error(bad)
	}
}

// If the peak was reached outside the recorded steps, the picture's title says that it is torch's counter, and the axis
// extends to the peak.
func TestPeakOutsideTheTimeline(t *testing.T) {
	m := spiky(10, 3, 4)
	peak := int64(20_000)
	m.PeakBytes = &peak
	l := m.layout()
	title := strings.Join(l.title, " ")
	if l.high < peak || !strings.Contains(title, "peak 19.53 KiB (torch's counter)") ||
		!strings.Contains(title, "highest recorded 8.79 KiB") {
		t.Errorf("axis to %d, %s", l.high, title)
	}
}
