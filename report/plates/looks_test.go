package plates

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// crowded returns figures with more than a page has room for. The figures have all categories, many rows, or loops.
func crowded() map[string]Figure {
	var all []Segment
	for i, key := range categoryKeys {
		all = append(all, Segment{key, float64(i+20) * gib})
	}
	var apart []Bar // each bar has its own panel and row
	for i := range MostBars {
		apart = append(apart, Bar{Label: fmt.Sprintf("%d %s", i, longName), Group: fmt.Sprintf("batch %d", i),
			Segments: all})
	}
	step := Step{At: []float64{0, 1, 2, 3}, Cause: "gradients"}
	for _, s := range all {
		step.Bands = append(step.Bands, Band{s.Key, []float64{s.Value / 40, s.Value / 30, 0}})
	}
	special := headline()
	for i := range special {
		special[i].NotPrivate = i%2 == 1
	}
	points := []Point{{Label: "Base", Time: 1, Peak: gib}, {Label: "Norms", Time: 3, Peak: 2 * gib, NotPrivate: true},
		{Label: "Ghost", Time: 2, Peak: 3 * gib}, {Label: "Less", Time: 4, Peak: gib / 2}}
	return map[string]Figure{
		"categories": Breakdown{Bars: []Bar{{Label: "a", Segments: all}, {Label: "b", Segments: all[3:]}}, Baseline: "a"},
		"apart":      Breakdown{Bars: apart},
		"all bands":  step,
		"loop":       loopStep(32),
		"falls":      falls(30),
		"norms":      Breakdown{Bars: special, Baseline: "Non-private"},
		"norms time": Time{Bars: special, Baseline: "Non-private", Digits: 1},
		"norms rest": Ladder{Bars: special},
		"cross":      Tradeoff{[]TradeoffPanel{{Points: points}}, "Base"},
	}
}

// falls returns a waterfall of n blocks. The last block is the largest.
func falls(n int) (f Waterfall) {
	for i := range n {
		f.Blocks = append(f.Blocks, Block{Label: fmt.Sprintf("%s %d", longName, i),
			Changes: []Segment{{"gradients", float64(i+1) * gib},
				{"activations", -float64(i) * gib / 3}}})
	}
	return f
}

// loopStep returns a step that loops over examples. Each round has a forward and a backward pass.
func loopStep(rounds int) Step {
	s := Step{Bands: []Band{{"parameters", nil}, {"activations", nil}}, Phases: []Span{{"zero_grad", "", 0, 10}}}
	for i := range rounds {
		from := float64(10 + 20*i)
		s.Phases = append(s.Phases, Span{"forward", "", from, from + 10}, Span{"backward", "", from + 10, from + 20})
	}
	end := float64(10 + 20*rounds)
	s.Phases = append(s.Phases, Span{"optimizer", "", end, end + 50})
	for at := 0.0; at < end+50; at += 5 {
		s.At = append(s.At, at)
		s.Bands[0].Values = append(s.Bands[0].Values, gib)
		s.Bands[1].Values = append(s.Bands[1].Values, math.Mod(at, 20)*gib/5)
	}
	s.At = append(s.At, end+50)
	return s
}

// everything returns all figures, with ordinary and with crowded data.
func everything() map[string]Figure {
	all := figures()
	for name, f := range crowded() {
		all[name] = f
	}
	return all
}

// A legend has at most three rows, and a figure of bars is at most as tall as a page.
func TestRoomOfFigures(t *testing.T) {
	for name, f := range everything() {
		for place, s := range styles {
			d := drawn(t, f, s)
			rows := map[float64]bool{}
			for _, i := range d.items {
				if i.fill != nil && i.axes == nil && len(i.points) == 4 {
					rows[i.points[0].y] = true
				}
			}
			if len(rows) > MostLegendRows {
				t.Errorf("%s, %s: a legend of %d rows", name, place, len(rows))
			}
			if _, bars := f.(Breakdown); bars && d.Height() > pageTall+1 {
				t.Errorf("%s, %s: %.0f points high", name, place, d.Height())
			}
		}
	}
	d := drawn(t, everything()["apart"], Column)
	if n := strings.Count(strings.Join(texts(d), " "), "batch "); n+len(d.LeftOut) != MostBars || n < MostBars/2 {
		t.Errorf("%d of %d panels, and %q left out", n, MostBars, d.LeftOut)
	}
}

// The line between two phases does not hide the peak's column.
func TestPeakColumnIsSeen(t *testing.T) {
	atEdge := Step{Bands: []Band{{"activations", nil}},
		Phases: []Span{{"forward", "", 0, 150}, {"backward", "", 150, 300}}}
	for i := range 300 {
		atEdge.At = append(atEdge.At, float64(i))
		value := 1.0
		if i == 150 {
			value = 5
		}
		atEdge.Bands[0].Values = append(atEdge.Bands[0].Values, value*gib)
	}
	atEdge.At = append(atEdge.At, 300)
	all := everything()
	all["at an edge"] = atEdge
	for name, f := range all {
		if _, is := f.(Step); !is {
			continue
		}
		for place, s := range styles {
			d := drawn(t, f, s)
			peak := d.items[slices.IndexFunc(d.items, func(i item) bool { return i.radius > 0 })].points[0]
			for _, i := range d.items {
				if i.stroke != nil && *i.stroke == page && len(i.points) == 2 && i.fill == nil &&
					math.Abs(i.points[0].x-peak.x) < i.width/2 {
					t.Errorf("%s, %s: a line at %.2f over the peak at %.2f", name, place, i.points[0].x, peak.x)
				}
			}
		}
	}
}

// The rounds of a loop are drawn as one phase, which states their number. Two rounds are not drawn as a loop.
func TestLoopIsDrawnOnce(t *testing.T) {
	for rounds, want := range map[int]bool{2: false, 3: true, 32: true} {
		f := loopStep(rounds)
		got := texts(drawn(t, f, Page))
		name := fmt.Sprintf("forward, backward × %d", rounds)
		if slices.Contains(got, name) != want {
			t.Errorf("%d rounds: %q", rounds, got)
		}
		if n := len(f.folded()); want && n != 3 || !want && n != len(f.Phases) {
			t.Errorf("%d rounds: %d phases", rounds, n)
		}
		f.Run = true
		if n := len(f.folded()); n != len(f.Phases) {
			t.Errorf("%d steps of a run: %d", len(f.Phases), n)
		}
	}
}

// The names of runs that are not private have a dagger and slanted letters. Other names have neither.
func TestMarkOfNorms(t *testing.T) {
	for name, f := range crowded() {
		if !strings.HasPrefix(name, "norms") {
			continue
		}
		for _, b := range headline() {
			d := drawn(t, f, Column)
			marked := slices.ContainsFunc(d.items, func(i item) bool {
				return i.label != nil && i.label.text == b.Label+Mark && i.label.slant
			})
			bare := slices.ContainsFunc(d.items, func(i item) bool {
				return i.label != nil && i.label.text == b.Label && !i.label.slant
			})
			want := slices.Contains([]string{"Per-sample", "Tiled", "Ghost"}, b.Label)
			if marked != want || bare == want {
				t.Errorf("%s, %s: with a mark: %v, without: %v", name, b.Label, marked, bare)
			}
		}
	}
	for place, s := range styles {
		d := drawn(t, crowded()["cross"], s)
		crosses := 0
		for _, i := range d.items {
			if i.stroke != nil && *i.stroke == soft && len(i.points) == 2 && i.points[0].x != i.points[1].x &&
				i.points[0].y != i.points[1].y {
				crosses++
			}
		}
		if crosses != 2 || !slices.Contains(texts(d), "Norms"+Mark) {
			t.Errorf("%s: %d lines of crosses, %q", place, crosses, texts(d))
		}
	}
}

// On the axes of a trade-off, changes have signs, and 0 has none.
func TestSignsOfTradeoff(t *testing.T) {
	d := drawn(t, crowded()["cross"], Column)
	for _, a := range d.panels {
		for _, tick := range append(slices.Clone(a.xTicks), a.yTicks...) {
			sign, _, _ := strings.Cut(tick.text, strings.TrimLeft(tick.text, "+−"))
			if want := map[bool]string{tick.at > 0: "+", tick.at < 0: "−", tick.at == 0: ""}[true]; sign != want {
				t.Errorf("%v is %q", tick.at, tick.text)
			}
		}
	}
	for _, text := range texts(drawn(t, figures()["tradeoff-one"], Column)) {
		if strings.HasPrefix(text, "+") {
			t.Errorf("%q, of no change", text)
		}
	}
}

// A point beyond the axes of a trade-off is named with its numbers. The numbers separate thousands.
func TestOutsideOfTradeoff(t *testing.T) {
	f := figures()["tradeoff"].(Tradeoff)
	want := []string{"Per-example loop (+2,375\u2009% time, −86.7\u2009% memory)"}
	if got := f.Outside(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (Tradeoff{Panels: f.Panels[:1]}).Outside(); got != nil {
		t.Errorf("%q", got)
	}
}

// Any two of the first twenty methods look different. A method keeps its look, whatever other methods are drawn.
func TestLooks(t *testing.T) {
	seen := map[look]int{}
	for n := range 20 {
		if before, known := seen[lookOf(n)]; known {
			t.Errorf("%d looks like %d", n, before)
		}
		seen[lookOf(n)] = n
	}
	corners := func(series ...Series) (n int) { // counts the corners of the first marker of the last series
		panel := LinesPanel{X: "x", At: []float64{1, 2}, Series: series}
		d := drawn(t, Lines{Axis: "y", Panels: []LinesPanel{panel}}, Column)
		for _, i := range d.items {
			if i.fill != nil && i.axes != nil {
				n = len(i.points)
			}
		}
		return n
	}
	for n := range 5 {
		line := Series{Label: "a", Values: []float64{gib, 2 * gib}, Look: n}
		other := Series{Label: "b", Values: []float64{3 * gib, 4 * gib}, Look: n + 1}
		want := map[int]int{0: 1, 4: 4, 3: 3, 5: 4, -3: 3}[shapes[n]]
		if alone, second := corners(line), corners(other, line); alone != want || second != want {
			t.Errorf("look %d: %d corners alone, %d as the second, want %d", n, alone, second, want)
		}
	}
}

// The bars of a waterfall are as long as the texts beside them allow.
func TestWaterfallFillsItsWidth(t *testing.T) {
	for name, f := range figures() {
		w, is := f.(Waterfall)
		if !is {
			continue
		}
		for _, s := range []Style{Column, IEEE, NeurIPS} {
			d := drawn(t, w, s)
			right := 0.0
			for _, i := range d.items {
				if i.label != nil {
					right = max(right, i.label.box.x1)
				}
			}
			if right < s.Width-1 {
				t.Errorf("%s: %.1f of %.1f points", name, right, s.Width)
			}
		}
	}
}

// If a heat map has few columns, it is as wide as a column of text.
func TestHeatmapFillsItsWidth(t *testing.T) {
	f := Heatmap{Rows: []string{"Non-private", "b"}, Columns: []string{"x", "y"},
		Cells: [][]Cell{{{Value: gib}, {Value: gib}}, {{Value: gib}, {Value: gib}}}}
	for place, s := range styles {
		d := drawn(t, f, s)
		right := 0.0
		for _, i := range d.items {
			for _, p := range i.points {
				right = max(right, p.x)
			}
		}
		left := d.items[0].label.box.x0
		if place == "column" && right < s.Width-1 || math.Abs(left-(s.Width-right)) > 6 && right < s.Width-1 {
			t.Errorf("%s: from %.1f to %.1f of %.1f points", place, left, right, s.Width)
		}
	}
}

// A dashed line over bars has a margin in the page's colour, so that it is visible on dark bars.
func TestDashedLineHasMargin(t *testing.T) {
	d := drawn(t, figures()["breakdown"], Column)
	dashes := 0
	for k, i := range d.items {
		if !i.dash {
			continue
		}
		dashes++
		margin := d.items[k-1]
		if margin.stroke == nil || *margin.stroke != page || margin.width <= i.width ||
			!slices.Equal(margin.points, i.points) {
			t.Errorf("%v without a margin", i.points)
		}
	}
	if dashes == 0 {
		t.Error("no dashed line")
	}
	for name, f := range everything() { // the dashed line crosses no text
		if _, bars := f.(Breakdown); !bars {
			continue
		}
		for place, s := range styles {
			d := drawn(t, f, s)
			for _, i := range d.items {
				if !i.dash || len(i.points) != 2 || i.points[0].x != i.points[1].x {
					continue
				}
				line := box{i.points[0].x - 0.25, i.points[0].y, i.points[0].x + 0.25, i.points[1].y}
				for _, o := range d.items {
					if o.label != nil && o.label.box.overlaps(line) {
						t.Errorf("%s, %s: the dashed line crosses %q", name, place, o.label.text)
					}
				}
			}
		}
	}
}

// Decimal separates thousands, and prints a number that rounds to 0 as a bound.
func TestDecimal(t *testing.T) {
	for v, want := range map[float64]string{1234: "1,234", 0.4: "<1", 0: "0", -2400: "−2,400", 12: "12"} {
		if got := decimal(v, 0); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// The changes of a waterfall have the unit of the baseline's peak, and no more digits than a reader can use.
func TestUnitOfWaterfall(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		base, change float64
		want         string
	}{{2 * gib, 172.5 * mib, "+0.17"}, {60 * gib, 6.49 * gib, "+6.49"}, {60 * gib, 20 * mib, "+20.00"},
		{0.5 * gib, 150 * mib, "+150.0"}, {0, 3 * gib, "+3.00"}} {
		f := Waterfall{Base: c.base, Blocks: []Block{{Label: "a", Changes: []Segment{{"gradients", c.change}}}}}
		if got := texts(drawn(t, f, Column)); !slices.Contains(got, c.want) {
			t.Errorf("%v over %v: no %s in %q", c.change, c.base, c.want, got)
		}
	}
}

// The first ten methods have ten different markers, hollow or filled. In a trade-off, nothing else distinguishes the
// points.
func TestMarkersDiffer(t *testing.T) {
	seen := map[int]int{}
	for n := range 10 {
		if before, known := seen[lookOf(n).sides]; known {
			t.Errorf("%d has the marker of %d", n, before)
		}
		seen[lookOf(n).sides] = n
	}
}

// The panels of a trade-off share their axes, unless one panel is more than four times as high as another. If no value
// is below 0, the axes begin at 0.
func TestAxesOfTradeoff(t *testing.T) {
	panel := func(title string, by float64) TradeoffPanel {
		return TradeoffPanel{title, []Point{{Label: "Base", Time: 1, Peak: gib, Base: true},
			{Label: "Fast", Time: 2, Peak: (1 + 0.2*by) * gib}, {Label: "Ghost", Time: 2.2, Peak: (1 + 0.1*by) * gib}}}
	}
	for by, own := range map[float64]bool{2: false, 10: true} {
		f := Tradeoff{[]TradeoffPanel{panel("a", 1), panel("b", by)}, "Base"}
		if f.OwnAxes() != own {
			t.Errorf("%v times: axes of their own: %v", by, !own)
		}
		d := drawn(t, f, Column)
		a, b := d.panels[0], d.panels[1]
		if (a.y1 == b.y1) == own || a.x1 != b.x1 {
			t.Errorf("%v times: axes up to %v and %v, %v and %v", by, a.x1, b.x1, a.y1, b.y1)
		}
		if a.y0 != 0 || b.y0 != 0 {
			t.Errorf("axes from %v and %v", a.y0, b.y0)
		}
		for _, i := range d.items {
			if i.label != nil && i.label.text == "Ghost" && i.label.box.x0 < a.box.x1 && i.label.box.x1 > a.box.x1+1 {
				t.Errorf("Ghost's name reaches %v, the plot %v", i.label.box.x1, a.box.x1)
			}
		}
	}
}

// If the ratio says that two totals differ, the totals have enough digits to differ too.
func TestTotalsDiffer(t *testing.T) {
	f := Time{Baseline: "a", Digits: 2, Bars: []Bar{{Label: "a", Segments: seconds("forward", 0.11)},
		{Label: "b", Segments: seconds("forward", 0.134)}, {Label: "c", Segments: seconds("forward", 1.9)}}}
	got := texts(drawn(t, f, Column))
	for _, want := range []string{"0.11", "0.13", "1.22×", "1.90"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// If a step has many categories, its legend has those with the largest areas. The legend may leave out categories with
// tall spikes.
func TestLegendByArea(t *testing.T) {
	f := Step{At: []float64{0}}
	keys := categoryKeys[:16]
	for _, key := range keys {
		f.Bands = append(f.Bands, Band{Key: key})
	}
	const events = 100
	for i := range events {
		f.At = append(f.At, float64(i+1))
		for b := range f.Bands {
			v := 1.0
			if b > 0 && b < len(f.Bands)-1 {
				v = 0.02
				if i == 10*b%events { // each category has one spike
					v = 0.2
				}
			}
			if b == len(f.Bands)-1 {
				v = 0.03 // this category is low and never ends
			}
			f.Bands[b].Values = append(f.Bands[b].Values, v*gib)
		}
	}
	got := texts(drawn(t, f, Column))
	if want := nameOf(keys[len(keys)-1], nil); !slices.Contains(got, want) {
		t.Errorf("no %q in %q", want, got)
	}
}

// TestWaterfallMergesEqualBlocks checks that runs with the same printed changes share a block, which names all of these
// runs. Long names must leave room for the bars.
func TestWaterfallMergesEqualBlocks(t *testing.T) {
	block := func(label string, bytes float64) Block {
		return Block{Label: label, Changes: []Segment{{"gradients", bytes}, {"held_by_hooks", bytes}}}
	}
	f := Waterfall{Baseline: "Non-private", Base: 10 * gib, Blocks: []Block{
		block("Tiled", gib), block("Fast", 2*gib), block("Mixed ghost", gib+1), block("Ghost", gib)}}
	for _, s := range []Style{Column, IEEE} {
		all := strings.Join(texts(drawn(t, f, s)), " ")
		if n := strings.Count(all, "Net"); n != 2 {
			t.Errorf("%d blocks, not 2: %s", n, all)
		}
		for _, name := range []string{"Tiled,", "Mixed ghost,", "Ghost"} {
			if !strings.Contains(all, name) {
				t.Errorf("no %q: %s", name, all)
			}
		}
	}
}

// The legend of times says "Backward, in one pass" only if another bar has a backward in several passes. The segment of
// small phases is called Other, since the table of phases has a different row Rest.
func TestLegendOfTime(t *testing.T) {
	one := Bar{Label: "a", Segments: []Segment{{"forward", 1}, {"backward", 2}, {"zero_grad", 1}}}
	two := Bar{Label: "b", Segments: []Segment{{"forward", 1}, {"norm_pass", 2}, {"gradient_pass", 2}}}
	for _, c := range []struct {
		bars        []Bar
		has, hasNot string
	}{{[]Bar{one}, "Backward", "Backward, in one pass"}, {[]Bar{one, two}, "Backward, in one pass", "Backward"},
		{[]Bar{one}, "Other", "Rest"}} {
		all := texts(drawn(t, Time{Bars: c.bars}, Column))
		if !slices.Contains(all, c.has) || slices.Contains(all, c.hasNot) {
			t.Errorf("%q with %q, or without %q", all, c.hasNot, c.has)
		}
	}
}

// No line of a grid crosses a text, since the text has a background.
func TestTextsHaveAGround(t *testing.T) {
	seen := 0
	for name, f := range everything() {
		d := drawn(t, f, Column)
		for g, line := range d.items {
			if line.stroke == nil || *line.stroke != grid || !line.drawn || len(line.points) != 2 {
				continue
			}
			at := box{line.points[0].x, line.points[0].y, line.points[1].x, line.points[1].y}
			for k := g; k < len(d.items); k++ {
				l := d.items[k].label
				if l == nil || d.items[k].drawn || !l.box.overlaps(box{at.x0 - hair, at.y0 - hair, at.x1 + hair, at.y1 + hair}) {
					continue
				}
				seen++
				if !slices.ContainsFunc(d.items[g:k], func(i item) bool {
					return i.fill != nil && len(i.points) == 4 && i.points[0].x <= max(l.box.x0, at.x0) &&
						i.points[2].x >= min(l.box.x1, at.x1)-hair && i.points[0].y <= max(l.box.y0, at.y0)+hair &&
						i.points[2].y >= min(l.box.y1, at.y1)-hair
				}) {
					t.Errorf("%s: a line of the grid at %.1f crosses %q at %.1f", name, at, l.text, l.box)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no text lies on a grid")
	}
}

// The name of a point is nearer to its own point than to any other, also close to the axis. Only points with
// overlapping markers share a name. The arrow to a point that is not on the front does not have the front's colour.
func TestNamesStandAtTheirPoints(t *testing.T) {
	points := []Point{{Label: "Base", Time: 1, Peak: gib, Base: true},
		{Label: "Per-sample", Time: 1.14, Peak: 1.025 * gib}, {Label: "Tiled", Time: 1.95, Peak: 1.029 * gib},
		{Label: "Ghost", Time: 6.1, Peak: 1.29 * gib},
		{Label: "Fast", Time: 5.6, Peak: 1.28 * gib}, {Label: "Loop", Time: 40, Peak: gib / 2, Base: true}}
	d := drawn(t, Tradeoff{[]TradeoffPanel{{Points: points}}, "Base"}, Column)
	a := d.panels[0]
	named := 0
	for _, i := range d.items {
		if i.fill != nil && *i.fill == accent && len(i.points) == 3 && i.points[0].x > a.box.x1-1 {
			t.Error("the arrow to the loop has the front's colour")
		}
		own := slices.IndexFunc(points, func(p Point) bool { return i.label != nil && p.Label == i.label.text })
		if own < 0 || points[own].Base {
			continue
		}
		named++
		from := func(p Point) float64 {
			x, y := a.x((p.Time-1)*100), a.y((p.Peak/gib-1)*100)
			return i.label.box.from(box{x, y, x, y})
		}
		for k, p := range points {
			if k != own && !p.Base && from(p) <= from(points[own]) {
				t.Errorf("%s's name is nearer to %s", points[own].Label, p.Label)
			}
		}
	}
	if named != 4 {
		t.Errorf("%d of 4 points have names of their own: %q", named, texts(d))
	}
}
