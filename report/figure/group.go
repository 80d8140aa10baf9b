package figure

import "github.com/dpsight/dpsight/schemas"

// minorShare is the share of a run's peak from which on a category has a colour of its own.
const minorShare = 0.005

const minorLabel = "under 0.5 % each"

// grouping divides the categories into those that the picture shows separately and small ones. No bytes are lost: a
// segment shows the sum of the small categories.
type grouping struct {
	major, minor []schemas.Category // categories in the order of precedence
	unknown      bool               // some peak has no breakdown
}

func (m *MemoryBreakdown) group() grouping {
	var g grouping
	present, major := map[schemas.Category]bool{}, map[schemas.Category]bool{}
	for _, r := range m.Rows {
		switch {
		case r.Breakdown != nil:
			for _, c := range r.Breakdown.Categories {
				present[c.Category] = present[c.Category] || c.Bytes != 0
				if float64(c.Bytes) >= minorShare*float64(r.Breakdown.AllocatedBytes) && c.Bytes > 0 {
					major[c.Category] = true
				}
			}
		case r.PeakBytes != nil:
			g.unknown = true
		}
	}
	for _, c := range schemas.Categories {
		switch {
		case major[c]:
			g.major = append(g.major, c)
		case present[c]:
			g.minor = append(g.minor, c)
		}
	}
	return g
}

// A segment is one coloured piece of a bar.
type segment struct {
	category schemas.Category // empty for the sum of the small categories
	bytes    int64
}

// segments returns the segments of a run's bar, in stacking order.
func (g *grouping) segments(bytes map[schemas.Category]int64) []segment {
	var out []segment
	for _, c := range g.major {
		if b := bytes[c]; b != 0 {
			out = append(out, segment{c, b})
		}
	}
	var rest int64
	for _, c := range g.minor {
		rest += bytes[c]
	}
	if rest != 0 {
		out = append(out, segment{"", rest})
	}
	return out
}
