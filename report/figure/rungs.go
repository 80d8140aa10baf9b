package figure

import (
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/ladder"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/schemas"
)

// rungTitles are the titles of the rungs. A category has its own name as title.
var rungTitles = map[string]string{
	ladder.RungDeviceUsed: "device used (NVML)", ladder.RungOtherProcesses: "other processes",
	ladder.RungDriverReserve: "driver's reserve",
	ladder.RungDriver:        "driver, charged to no process", ladder.RungContext: "CUDA context",
	ladder.RungModules: "modules", ladder.RungNonTorch: "non-torch",
	ladder.RungReserved: "reserved by torch", ladder.RungPendingFree: "pending free",
}

// RungTitle returns the title of a rung, or of several rungs that a run could not separate, as in "CUDA context,
// modules and non-torch".
func RungTitle(rung string) string {
	parts := strings.Split(rung, "+")
	for i, p := range parts {
		if t, ok := rungTitles[p]; ok {
			parts[i] = t
		}
	}
	last := len(parts) - 1
	if last == 0 {
		return parts[0]
	}
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// rungKind is a kind of colour in a ladder's bar, in the order of stacking. The order lets allocated bytes end at their
// total on the axis, and so do torch's reserved and the device's memory in use.
type rungKind int

const (
	kindUnbroken rungKind = iota // allocated or reserved bytes without known parts
	kindCategory
	kindPending
	kindCached
	kindContext
	kindDriver
	kindOthers
)

// rungColors are the colours of everything that is not allocated, in addition to the palette of categories.
var rungColors = map[rungKind]canvas.Color{
	kindUnbroken: unknownColor,
	kindPending:  0x7984de,
	kindCached:   0xe1c293,
	kindContext:  0x5d6f9c,
	kindDriver:   0xb5905b,
	kindOthers:   0x1a234a,
}

// kindOf returns a rung's kind. Several merged rungs have the kind of the innermost.
func kindOf(rung string) rungKind {
	parts := strings.Split(rung, "+")
	has := func(p string) bool { return slices.Contains(parts, p) }
	switch {
	case slices.Contains(schemas.Categories, rung):
		return kindCategory
	case has(ladder.RungReserved), has(ladder.RungAllocated):
		return kindUnbroken
	case has(ladder.RungCached):
		return kindCached
	case has(ladder.RungPendingFree):
		return kindPending
	case has(ladder.RungContext):
		return kindContext
	case has(ladder.RungDriver):
		return kindDriver
	}
	return kindOthers
}

// leaves returns a moment's undivided rungs, innermost first.
func leaves(m *ladder.Moment) []ladder.Rung {
	divided := map[string]bool{}
	for _, r := range m.Rungs {
		if r.In != nil && r.Bytes != nil {
			divided[*r.In] = true
		}
	}
	var out []ladder.Rung
	for _, r := range m.Rungs {
		if r.Bytes != nil && *r.Bytes != 0 && !divided[r.Rung] {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b ladder.Rung) int {
		if d := int(kindOf(a.Rung)) - int(kindOf(b.Rung)); d != 0 {
			return d
		}
		return slices.Index(schemas.Categories, a.Rung) - slices.Index(schemas.Categories, b.Rung)
	})
	return out
}

// rungGroups decides which parts of ladders have a colour of their own, as grouping does for categories.
type rungGroups struct {
	major map[string]bool // names of the categories that are shown singly
	kinds map[rungKind]bool
	// rungs lists, by kind, the rungs drawn in its colour: rungs that one run cannot separate may be separate in
	// another run.
	rungs map[rungKind][]string
	minor []string // names of the other rungs, in the order of stacking
}

func groupRungs(moments []*ladder.Moment) rungGroups {
	g := rungGroups{map[string]bool{}, map[rungKind]bool{}, map[rungKind][]string{}, nil}
	var all []ladder.Rung
	for _, m := range moments {
		parts := leaves(m)
		var whole int64
		for _, r := range parts {
			whole += max(*r.Bytes, 0)
		}
		for _, r := range parts {
			k := kindOf(r.Rung)
			if float64(*r.Bytes) >= minorShare*float64(whole) || k == kindUnbroken {
				if k == kindCategory {
					g.major[r.Rung] = true
				} else {
					g.kinds[k] = true
				}
			}
		}
		all = append(all, parts...)
	}
	slices.SortStableFunc(all, func(a, b ladder.Rung) int { return int(kindOf(a.Rung)) - int(kindOf(b.Rung)) })
	var minor [2][]string // categories in the order of precedence, then other rungs
	for _, c := range schemas.Categories {
		if !g.major[c] && slices.ContainsFunc(all, func(r ladder.Rung) bool { return r.Rung == c }) {
			minor[0] = append(minor[0], words(c))
		}
	}
	for _, r := range all {
		k := kindOf(r.Rung)
		switch title := RungTitle(r.Rung); {
		case k == kindCategory:
		case g.kinds[k]:
			if !slices.Contains(g.rungs[k], r.Rung) {
				g.rungs[k] = append(g.rungs[k], r.Rung)
			}
		case !slices.Contains(minor[1], title):
			minor[1] = append(minor[1], title)
		}
	}
	g.minor = slices.Concat(minor[0], minor[1])
	return g
}

// A rungPart is one coloured piece of a bar in a ladder.
type rungPart struct {
	bytes int64
	fill  canvas.Color
	frame bool
}

// parts returns the pieces of a bar, with the small ones of each level merged and without negative sizes.
func (g *rungGroups) parts(m *ladder.Moment) []rungPart {
	var out []rungPart
	var small int64
	flush := func() {
		if small > 0 {
			out = append(out, rungPart{bytes: small, fill: minorColor})
		}
		small = 0
	}
	last := kindUnbroken
	for _, r := range leaves(m) {
		k := kindOf(r.Rung)
		if k > kindCategory && last <= kindCategory || k > kindCached && last <= kindCached {
			flush() // ends the stack of allocated, or of torch's reserved
		}
		last = k
		switch {
		case *r.Bytes < 0:
		case k == kindCategory && g.major[r.Rung]:
			out = append(out, rungPart{bytes: *r.Bytes, fill: palette[r.Rung]})
		case k != kindCategory && g.kinds[k]:
			out = append(out, rungPart{*r.Bytes, rungColors[k], k == kindUnbroken})
		default:
			small += *r.Bytes
		}
	}
	flush()
	return out
}

// title returns the meaning of a colour. If some bar merges rungs that its run could not separate, the title names all
// these rungs.
func (g *rungGroups) title(k rungKind) string {
	if k == kindUnbroken {
		var titles []string
		for _, r := range g.rungs[k] {
			titles = append(titles, RungTitle(r))
		}
		return strings.Join(titles, " or ") + ", not broken down"
	}
	least := slices.MinFunc(g.rungs[k], func(a, b string) int { return strings.Count(a, "+") - strings.Count(b, "+") })
	var with []string
	for _, r := range g.rungs[k] {
		for _, p := range strings.Split(r, "+") {
			if !slices.Contains(with, p) && !slices.Contains(strings.Split(least, "+"), p) {
				with = append(with, p)
			}
		}
	}
	if len(with) == 0 {
		return RungTitle(least)
	}
	return RungTitle(least) + ", in places with " + RungTitle(strings.Join(with, "+"))
}

// legend lists what has a colour of its own, in the order of stacking. Parts without a breakdown are left out.
func (g *rungGroups) legend() []legendItem {
	var items []legendItem
	for _, c := range schemas.Categories {
		if g.major[c] {
			items = append(items, legendItem{label: words(c), fill: palette[c]})
		}
	}
	for k := kindUnbroken; k <= kindOthers; k++ {
		if !g.kinds[k] {
			continue
		}
		label := g.title(k)
		items = append(items, legendItem{label: label, fill: rungColors[k], frame: k == kindUnbroken})
	}
	if len(g.minor) > 0 {
		items = append(items, legendItem{label: minorLabel, fill: minorColor})
	}
	return items
}
