package plates

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var pictures = flag.String("pictures", "", "a folder for every figure in every format, to look at")

const gib = 1 << 30

// styles are all widths and themes.
var styles = map[string]Style{
	"column": Column, "page": Page, "ieee": IEEE, "neurips": NeurIPS, "slide": Slide,
	"column-dark": Column.OnDark(), "slide-dark": Slide.OnDark(),
}

// headline is what five ways to compute clipped gradients cost, in GiB, as recorded.
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

// swept are the headline's bars for some values of an outer parameter.
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

// figures are all kinds with recorded values, and with values and names that are hard to draw.
func figures() map[string]Figure {
	special := headline()
	special[1].State, special[2].State = OOM, Failed
	special[3].State, special[4].State, special[5].State = Predicted, Bounded, NotRun
	hard := []Bar{
		{Label: longName, Segments: []Segment{{"parameters", 100 * gib}}},
		{Label: longName + "_2", Segments: []Segment{{"parameters", 1}}},
		{Label: "逐样本梯度裁剪与噪声的显存开销比较实验记录", Segments: []Segment{{"activations", 55 * gib}, {"of_no_known_kind", 30 * gib}}},
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
		"time":              Time{Bars: times(), Baseline: "Non-private"},
		"time-one":          Time{Bars: times()[:1], Baseline: "Non-private"},
	}
	return all
}

// Whatever is drawn, wherever: no two texts overlap, nothing leaves the figure, and no text is under 6 points.
func TestNothingOverlaps(t *testing.T) {
	for name, f := range figures() {
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
			if *pictures != "" {
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
