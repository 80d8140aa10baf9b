package figure

import (
	"fmt"

	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/canvas"
)

// slot is the place of one segment of a timeline.
type slot struct {
	segment     *timeline.TimelineSegment
	left, right float64
	name        string // empty if the segment has no name, or too little room for it
}

// lay gives each segment a width: at least the width of its name if there is room, and a share of the rest by its
// number of events.
func (l *timelineLayout) lay(segments []*timeline.TimelineSegment, allSteps bool) {
	var events, need float64
	for _, s := range segments {
		events += float64(s.EndSeq - s.BeginSeq)
		need += nameWidth(s.Phase)
	}
	spare := plotWidth - need
	x := l.plot.X0
	for _, s := range segments {
		share := float64(s.EndSeq-s.BeginSeq) / events
		width := nameWidth(s.Phase) + spare*share
		if spare < 0 {
			width = plotWidth * share
		}
		sl := slot{segment: s, left: x, right: x + width}
		if canvas.Measure(s.Phase, stripSize)+4 <= width {
			sl.name = s.Phase
		} else if s.Phase != "" {
			l.unnamed = true
		}
		x += width
		l.slots = append(l.slots, sl)
	}
	l.slots[len(l.slots)-1].right = l.plot.X1
	if !allSteps {
		return
	}
	for _, sl := range l.slots {
		k := len(l.steps) - 1
		if k >= 0 && sameStep(l.steps[k].segment.Step, sl.segment.Step) {
			l.steps[k].right = sl.right
			continue
		}
		l.steps = append(l.steps, sl)
	}
	for k := range l.steps {
		s := &l.steps[k]
		s.name = "no step"
		if s.segment.Step != nil {
			s.name = fmt.Sprintf("step %d", *s.segment.Step)
		}
		if canvas.Measure(s.name, stripSize)+6 > s.right-s.left {
			s.name = ""
		}
	}
}

func nameWidth(name string) float64 {
	if name == "" {
		return 8
	}
	return canvas.Measure(name, stripSize) + 8
}

func sameStep(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
