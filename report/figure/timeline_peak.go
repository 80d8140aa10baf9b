package figure

import (
	"fmt"

	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// peakLine is one line of a peak's composition.
type peakLine struct {
	text  string
	fill  canvas.Color
	shown bool // with a swatch
}

// annotate finds the peak on the plot and describes its parts. It uses at most lines lines beside the line with
// size and place.
func (p *timePanel) annotate(groups *grouping, lines int) {
	t, r := p.row.Timeline, p.row
	p.peakX = p.eventX(t.Peak.Event)
	p.peakY = p.y(t.PeakBytes)
	add := func(text string, fill canvas.Color, shown bool) {
		p.peak = append(p.peak, peakLine{canvas.Fit(text, insideSize, peakText-swatch-6), fill, shown})
	}
	place := ""
	if t.Peak.Phase != nil {
		place = ", " + *t.Peak.Phase
	}
	if r.PeakBytes != nil && *r.PeakBytes > t.PeakBytes {
		add("peak "+table.Size(*r.PeakBytes)+" (torch's counter), not recorded", 0, false)
		add("highest recorded "+table.Size(t.PeakBytes)+place, 0, false)
		lines--
	} else {
		add("peak "+table.Size(t.PeakBytes)+place, 0, false)
	}
	if r.Breakdown == nil {
		return
	}
	bytes := map[schemas.Category]int64{}
	for _, c := range r.Breakdown.Categories {
		bytes[c.Category] = c.Bytes
	}
	type part struct {
		category schemas.Category
		bytes    int64
	}
	var parts []part
	for _, c := range schemas.Categories {
		if bytes[c] <= 0 {
			continue
		}
		at := len(parts)
		for at > 0 && parts[at-1].bytes < bytes[c] {
			at--
		}
		parts = append(parts[:at], append([]part{{c, bytes[c]}}, parts[at:]...)...)
	}
	most := len(parts)
	if most > lines {
		most = max(1, lines-1)
	}
	var rest int64
	for k, pt := range parts {
		if k < most {
			add(words(pt.category)+" "+table.Size(pt.bytes), groups.color(pt.category), true)
		} else {
			rest += pt.bytes
		}
	}
	if rest > 0 {
		add(fmt.Sprintf("%d others %s", len(parts)-most, table.Size(rest)), minorColor, true)
	}
}

// color is the category's, or the one of all small ones.
func (g *grouping) color(c schemas.Category) canvas.Color {
	for _, m := range g.major {
		if m == c {
			return palette[c]
		}
	}
	return minorColor
}
