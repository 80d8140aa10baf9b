package plates

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var pictures = flag.String("pictures", "", "a folder for every figure in every format, to look at")
var only = flag.String("places", "", "of the pictures, each with a comma behind it; empty: all")

const gib = 1 << 30

// styles holds all widths and themes of figures.
var styles = map[string]Style{
	"column": Column, "page": Page, "ieee": IEEE, "neurips": NeurIPS, "slide": Slide,
	"column-dark": Column.OnDark(), "slide-dark": Slide.OnDark(),
}

// headline returns the recorded memory in GiB of non-private training and of five ways to compute clipped gradients.
func headline() []Bar {
	return []Bar{
		{Label: "Non-private", Segments: gibs("parameters", 4.3653, "optimizer_state", 8.7305, "activations", 42.2281,
			"activation_gradients", 3.9062, "workspace", 0.0635)},
		{Label: "Per-sample", Segments: gibs("parameters", 4.3653, "optimizer_state", 8.7305, "gradients", 4.3653,
			"activations", 42.228, "activation_gradients", 3.9063, "workspace", 0.0635)},
		{Label: "Fast", Segments: gibs("parameters", 4.3653, "optimizer_state", 8.7305, "gradients", 4.3653,
			"per_sample_gradients", 0.4883, "activations", 42.228, "clip_temporaries", 1.9532,
			"activation_gradients", 2.0781, "workspace", 0.0636)},
		{Label: "Tiled", Segments: gibs("parameters", 4.3653, "optimizer_state", 8.7305, "gradients", 4.3653,
			"activations", 42.228, "clip_temporaries", 1.9688, "activation_gradients", 2.0781, "workspace", 0.0637)},
		{Label: "Book-keeping", Segments: gibs("parameters", 4.3653, "optimizer_state", 8.7305, "gradients", 4.3653,
			"activations", 27.1028, "hook_activations", 15.1252, "activation_gradients", 3.9063, "workspace", 0.0636)},
		{Label: "Ghost", Segments: gibs("parameters", 4.3653, "optimizer_state", 8.7305, "gradients", 4.3653,
			"activations", 42.228, "clip_temporaries", 3.9532, "activation_gradients", 2.0781, "workspace", 0.0636)},
	}
}

func gibs(pairs ...any) (out []Segment) { return segments(gib, pairs) }

func segments(unit float64, pairs []any) (out []Segment) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, Segment{pairs[i].(string), pairs[i+1].(float64) * unit})
	}
	return out
}

func seconds(pairs ...any) []Segment { return segments(1, pairs) }

func times() []Bar {
	return []Bar{
		{Label: "Non-private", Segments: seconds("forward", 1.1832, "backward", 2.8498, "optimizer", 0.0259)},
		{Label: "Per-sample", Segments: seconds("forward", 1.1849, "backward", 3.5564, "clip", 0.0071, "noise", 0.0617)},
		{Label: "Fast", Segments: seconds("forward", 1.183, "norm_pass", 3.5617, "gradient_pass", 2.8526, "noise", 0.0524)},
		{Label: "Tiled", Segments: seconds("forward", 1.183, "norm_pass", 3.69, "gradient_pass", 2.8537, "noise", 0.0519)},
		{Label: "Book-keeping", Segments: seconds("forward", 1.1845, "backward", 10.521, "clip", 0.7653, "noise", 0.0537)},
		{Label: "Ghost", Segments: seconds("forward", 1.1855, "norm_pass", 14.9944, "gradient_pass", 2.8564,
			"noise", 0.0527)},
	}
}

const longName = "DPGhostClippingTrainer_bs4_seq1024_with_everything_else_on_it"

// swept returns the bars of headline for some values of an outer parameter.
func swept(groups ...string) (out []Bar) {
	for i, g := range groups {
		for _, b := range headline() {
			b.Group = g
			parts := b.Segments
			b.Segments = nil
			for _, s := range parts {
				b.Segments = append(b.Segments, Segment{s.Key, s.Value * float64(i+1) / 3})
			}
			out = append(out, b)
		}
	}
	return out
}

// figures returns figures of all kinds. Some figures have recorded values, and some figures have values and names that
// are hard to draw.
func figures() map[string]Figure {
	special := headline()
	special[1].State, special[2].State = OOM, Failed
	special[3].State, special[4].State, special[5].State = Predicted, Bounded, NotRun
	hard := []Bar{
		{Label: longName, Segments: []Segment{{"parameters", 100 * gib}}},
		{Label: longName + "_2", Segments: []Segment{{"parameters", 1}}},
		{Label: "逐样本梯度裁剪与噪声的显存开销比较实验记录",
			Segments: []Segment{{"activations", 55 * gib}, {"of_no_known_kind", 30 * gib}}},
		{Label: `a$b&c#d_e%f{g}~h^i\j<k>`, Segments: []Segment{{"gradients", 3 * gib}}},
		{Label: "", Segments: nil},
	}
	var forty []Bar
	for i := range 40 {
		b := headline()[i%6]
		b.Label = fmt.Sprintf("Run %d of forty", i+1)
		forty = append(forty, b)
	}
	all := map[string]Figure{
		"breakdown":         Breakdown{Bars: headline(), Baseline: "Non-private"},
		"breakdown-one":     Breakdown{Bars: headline()[5:]},
		"breakdown-special": Breakdown{Bars: special, Baseline: "Non-private", Capacity: 80 * gib},
		"breakdown-hard":    Breakdown{Bars: hard, Baseline: longName},
		"breakdown-forty":   Breakdown{Bars: forty, Baseline: "Run 1 of forty"},
		"breakdown-swept":   Breakdown{Bars: swept("batch 4", "batch 8", "batch 16"), Baseline: "Non-private"},
		"breakdown-swept-4": Breakdown{Bars: swept("512", "1,024", "2,048", longName), Baseline: "Non-private"},
		"time":              Time{Bars: times(), Baseline: "Non-private", Digits: 2},
		"time-one":          Time{Bars: times()[:1], Baseline: "Non-private"},
	}
	point := func(label string, time, peak float64) Point { return Point{Label: label, Time: time, Peak: peak * gib} }
	long := TradeoffPanel{"1.2 B, 1 × 16,384", []Point{point("Non-private", 4.06, 59.29),
		point("Per-sample", 4.81, 63.66), point("Fast", 7.65, 64.27), point("Tiled", 7.78, 63.80),
		point("Book-keeping", 12.52, 63.66),
		point("Ghost", 19.09, 65.78)}}
	short := TradeoffPanel{Title: "7 M, 32 × 512"}
	for _, p := range []struct {
		label                string
		ms, low, high, peaks float64
	}{{"Non-private", 12, 9, 12, 2.03}, {"Per-sample, hooks", 26, 25, 31, 2.2}, {"Book-keeping", 30, 26, 34, 2.07},
		{"Book-keeping, tiled", 32, 30, 33, 2.07}, {"Fast", 35, 33, 39, 2.46}, {"Tiled", 37, 32, 44, 2.44},
		{"Mixed ghost", 37, 34, 45, 2.44}, {"Ghost", 38, 35, 53, 2.44}, {"Per-sample, functorch", 59, 53, 68, 2.2},
		{"Per-example loop", 297, 267, 316, 0.27}} {
		short.Points = append(short.Points, Point{Label: p.label, Time: p.ms / 1e3, Peak: p.peaks * gib,
			TimeLow: p.low / 1e3, TimeHigh: p.high / 1e3})
	}
	var crowd []Point
	for i := range 40 {
		crowd = append(crowd, point(fmt.Sprintf("%s %d", longName, i), 1+float64(i*i%17)/5, 2+float64(i*7%23)/9))
	}
	var steep []Series
	for i := range 14 {
		steep = append(steep, Series{Label: fmt.Sprintf("%s %d", longName, i), Values: []float64{1 * gib, 2 * gib, 3 * gib}})
	}
	grow := func(label string, accent bool, v ...float64) Series {
		for i := range v {
			v[i] *= gib
		}
		return Series{Label: label, Values: v, Accent: accent}
	}
	oom := grow("Per-sample", false, 1, 4, 16, 0)
	oom.States = []State{Measured, Measured, Measured, OOM}
	cells := [][]Cell{}
	for i := range 5 {
		var row []Cell
		for k, v := range []float64{11, 18, 32, 60, 74} {
			c := Cell{Value: (v + float64(5*min(i, 1)+i)) * gib}
			switch {
			case k == 4 && i == 0:
				c.State = Predicted
			case k == 4 && i < 4:
				c.State = OOM
			case k == 3 && i == 3:
				c.State = Bounded
			case k == 1 && i == 4:
				c.State = Failed
			case k == 4:
				c.State = NotRun
			}
			row = append(row, c)
		}
		cells = append(cells, row)
	}
	var wall [][]Cell
	var names []string
	for i := range 45 {
		names = append(names, fmt.Sprintf("%d %s", i, longName))
		var row []Cell
		for k := range 45 {
			row = append(row, Cell{Value: float64(i*k) * gib, State: State(i * k % 6)})
		}
		wall = append(wall, row)
	}
	changes := func(label string, pairs ...any) Block { return Block{Label: label, Changes: gibs(pairs...)} }
	waterfall := Waterfall{Baseline: "Non-private", Base: 59.2936 * gib, Blocks: []Block{
		changes("Ghost", "gradients", 4.3653, "clip_temporaries", 3.9531, "activation_gradients", -1.8281,
			"workspace", 0.0001),
		changes("Fast", "gradients", 4.3653, "per_sample_gradients", 0.4883, "clip_temporaries", 1.9531,
			"activation_gradients", -1.8281),
		changes("Tiled", "gradients", 4.3653, "clip_temporaries", 1.9687, "activation_gradients", -1.8281)}}
	saving := Waterfall{Blocks: []Block{changes(longName, "activations", -40.0, "gradients", 3.0, "noise", 1e-9),
		changes("逐样本梯度裁剪与噪声的显存开销比较", "activations", 1e-9), changes("c", "gradients", -2.0)}}
	for name, f := range map[string]Figure{
		"waterfall":      waterfall,
		"waterfall-hard": saving,
		"step":           ghostStep(1),
		"step-long":      ghostStep(40),
		"step-one":       Step{At: []float64{0, 1}, Bands: []Band{{"parameters", []float64{1}}}},
		"step-hard": Step{At: []float64{0, 5, 10, 20}, Cause: "gradients", Bands: []Band{{"parameters", []float64{1, 1, 1}},
			{"gradients", []float64{0, 100 * gib, 0}}, {"of_no_known_kind", []float64{gib, gib, gib}}},
			Phases: []Span{{"forward", longName, 0, 5}, {"backward", longName, 5, 6}, {"clip", "", 6, 6.1},
				{"noise", "逐样本梯度裁剪与噪声", 6.1, 6.2}, {"optimizer", "", 6.2, 20}}},
		"tradeoff":        Tradeoff{[]TradeoffPanel{long, short}, "Non-private"},
		"tradeoff-one":    Tradeoff{[]TradeoffPanel{short}, ""},
		"tradeoff-single": Tradeoff{[]TradeoffPanel{{"", long.Points[:1]}}, ""},
		"tradeoff-hard":   Tradeoff{[]TradeoffPanel{{longName, crowd}, {longName, crowd[:9]}, long, short, long}, ""},
		"lines": Lines{Axis: "Peak over non-private", Panels: []LinesPanel{
			{"longer sequences", "Sequence length, batch 1", []float64{8192, 16384}, nil, []Series{
				grow("Ghost", true, 0.69, 2.22),
				grow("Tiled", false, 0.2, 0.22), grow("Per-sample", false, 0.18, 0.19)}},
			{"larger batches", "Batch size, 512 tokens", []float64{4, 8}, nil, []Series{grow("Per-sample", false, 25, 41.4),
				grow("Fast", false, 5.1, 8.93), grow("Ghost", true, 5.02, 5.04)}}}},
		"lines-oom": Lines{Axis: "Peak", Panels: []LinesPanel{{"", "Batch size", []float64{1, 2, 4, 8}, nil,
			[]Series{oom, grow("Ghost", true, 1, 2, 3, 5)}}}},
		"lines-hard": Lines{Axis: "Peak", Panels: []LinesPanel{{longName, longName, []float64{1, 2, 3}, nil, steep},
			{"逐样本梯度裁剪", "长度", []float64{1000000, 1000001}, nil, steep[:2]}}},
		"heatmap": Heatmap{[]string{"Non-private", "Per-sample", "Fast", "Tiled", "Ghost"},
			[]string{"2k", "4k", "8k", "16k", "20k"}, "Sequence length (tokens)", cells, Bytes, 0},
		"heatmap-hard": Heatmap{names, names, longName, wall, Bytes, 0},
		"ladder": Ladder{Bars: []Bar{
			{Label: "Non-private", Segments: gibs("allocated", 59.29, "cached", 2.1, "context", 0.45, "driver", 0.61)},
			{Label: "Ghost", Segments: gibs("allocated", 65.78, "pending_free", 0.3, "cached", 4.4, "context", 0.45,
				"driver", 0.61, "other_processes", 1.2)}}},
		"largest": Largest{Baseline: "Non-private", Rows: []LargestRow{{"Non-private", "H200, 140 GiB", 512, Bounded},
			{"Per-sample", "H200, 140 GiB", 40, Measured}, {"Ghost", "H200, 140 GiB", 384, Measured},
			{"Non-private", "A100, 40 GiB", 128, Measured}, {"Per-sample", "A100, 40 GiB", 0, OOM},
			{"Ghost", "A100, 40 GiB", 96, Predicted}}},
		"trend": Trend{[]string{"a1b2c3d", "b2c3d4e", "c3d4e5f", "d4e5f60", "e5f6071"}, []Series{
			grow("Ghost", true, 7.1, 7.1, 6.2, 6.3, 5.9), grow("Per-sample", false, 5, 5, 5, 5.2, 5.2)}, "Peak", Bytes},
		"accuracy": Accuracy{[]Prediction{{"ghost", 65 * gib, 65.78 * gib}, {"fast", 64.3 * gib, 64.27 * gib},
			{"lora", 12.2 * gib, 11.1 * gib}, {"cnn", 3.1 * gib, 3.1 * gib}, {"per_sample", 63.66 * gib, 63.66 * gib},
			{"book", 40 * gib, 44 * gib}}},
		"accuracy-hard": Accuracy{[]Prediction{{longName, 1, 2}, {longName, 100 * gib, 50 * gib}, {"c", gib, gib},
			{longName, 101 * gib, 50 * gib}, {longName, 102 * gib, 50 * gib}, {"zero", 0, 0}}},
		"accuracy-one": Accuracy{[]Prediction{{"one", gib, gib}}},
	} {
		all[name] = f
	}
	return all
}

// ghostStep returns a step with the memory of ghost clipping. The memory rises in the forward pass, stays while norms
// are computed, and falls in the second backward pass. Each event is repeated.
func ghostStep(repeat int) Step {
	var s Step
	keys := []string{"parameters", "optimizer_state", "gradients", "activations", "clip_temporaries", "summed_gradients",
		"optimizer_temporaries"}
	values := make([][]float64, len(keys))
	n := 380 * repeat
	for i := range n + 1 {
		s.At = append(s.At, float64(i)*19000/float64(n))
	}
	for i := range n {
		t := s.At[i] / 1000
		up := func(from, to float64) float64 { return max(0, min(1, (t-from)/(to-from))) }
		v := []float64{4.37, 8.73, 4.37 * (1 - up(0.1, 0.5) + up(0.5, 0.51)), 42.2 * (up(0.6, 1.2) - up(10.5, 14)), 0, 0, 0}
		if t > 1.2 && t < 10.5 {
			v[4] = 3.95 - float64(i/repeat%7)*0.1
		}
		v[5] = 4.3 * up(14, 15)
		if t > 18 {
			v[6] = 4 * (up(18, 18.3) - up(18.5, 19))
		}
		for k := range keys {
			values[k] = append(values[k], v[k]*gib)
		}
	}
	for k, key := range keys {
		s.Bands = append(s.Bands, Band{key, values[k]})
	}
	s.Cause = "clip_temporaries"
	s.Phases = []Span{{"zero_grad", "", 0, 60}, {"forward", "", 60, 1200}, {"norm_pass", "", 1200, 10500},
		{"gradient_pass", "", 10500, 14000}, {"accumulate", "", 14000, 15100}, {"noise", "", 15100, 18100},
		{"optimizer", "optim.", 18100, 19000}}
	return s
}

// In every figure and style, no two texts overlap, nothing leaves the figure, and no text is under 6 points.
func TestNothingOverlaps(t *testing.T) {
	for name, f := range everything() {
		for place, s := range styles {
			d, err := f.Draw(s)
			if err != nil {
				t.Errorf("%s, %s: %v", name, place, err)
				continue
			}
			for _, wrong := range d.Misplaced() {
				t.Errorf("%s, %s: %s", name, place, wrong)
			}
			if s.Height > 0 && d.Height() > Centimetres(9) {
				t.Errorf("%s, %s: %.0f points high", name, place, d.Height())
			}
			if *pictures != "" && (*only == "" || strings.Contains(*only, place+",")) {
				save(t, filepath.Join(*pictures, name+"-"+place), d)
			}
		}
	}
}

func save(t *testing.T, path string, d *Drawing) {
	t.Helper()
	var b bytes.Buffer
	for _, format := range formats(d) {
		b.Reset()
		if err := format.write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+"."+format.name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type format struct {
	name  string
	write func(*bytes.Buffer) error
}

func formats(d *Drawing) []format {
	return []format{
		{"pdf", func(b *bytes.Buffer) error { return d.PDF(b) }}, {"svg", func(b *bytes.Buffer) error { return d.SVG(b) }},
		{"png", func(b *bytes.Buffer) error { return d.PNG(b) }}, {"tex", func(b *bytes.Buffer) error { return d.TeX(b) }},
	}
}

func TestNothingToDraw(t *testing.T) {
	bars := headline()
	for i := range bars {
		bars[i].State = OOM
	}
	for _, f := range []Figure{Breakdown{}, Breakdown{Bars: bars, Capacity: 80 * gib}, Time{}} {
		if d, err := f.Draw(Column); err != ErrEmpty || d != nil {
			t.Errorf("%T: %v, %v", f, d, err)
		}
	}
}

func TestShort(t *testing.T) {
	for label, want := range map[string]string{
		"Ghost": "Ghost", "a_b": "a b", "a\n\tb": "a b", longName: "DPGhostClip…rything else on it",
	} {
		got := Short(label)
		if label != longName && got != want || length(got) > longest || strings.Contains(got, "_") {
			t.Errorf("%q: %q, want %q", label, got, want)
		}
	}
}

// The style defines every colour that the source of a figure names.
func TestStyleHasAllColours(t *testing.T) {
	style := StyleTeX()
	named := regexp.MustCompile(`dps[A-Z][A-Za-z]*`)
	for name, f := range everything() {
		d, err := f.Draw(Column)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := d.TeX(&b); err != nil {
			t.Fatal(err)
		}
		for _, c := range named.FindAllString(b.String(), -1) {
			if !strings.Contains(style, `\definecolor{`+c+"}") && !strings.Contains(style, `\providecommand{\`+c+"}") {
				t.Fatalf("%s: the style lacks %s", name, c)
			}
		}
	}
	if *pictures != "" {
		if err := os.WriteFile(filepath.Join(*pictures, "style.tex"), []byte(style), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
