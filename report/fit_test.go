package report_test

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas"
)

// searches returns all kinds of results of a search, with names of every length. One of these documents has several
// methods on several devices, and one has a search that was stopped. In one search nothing fits, and in another search
// everything fits. In one search the memory falls as the value rises.
func searches() map[string]predict.FitDocument {
	run := func(value int64, fits bool, reserved int64) predict.FitRun {
		return predict.FitRun{Value: value,
			Run: predict.PredictionRun{Identity: identity.Identity{RunID: fmt.Sprintf("run-%d", value),
				Status: schemas.StatusOK}, Fits: &fits,
				PeakBytes: new(reserved - 1<<20), PeakReservedBytes: &reserved,
				Confidence: &schemas.Confidence{Level: schemas.Close, Reasons: []string{"it was read"},
					KnownError: new("such cases were off")}}}
	}
	one := func(method, gpu string, memory int64, runs ...predict.FitRun) predict.FitSearch {
		return predict.FitSearch{Method: method, Profile: strings.ToLower(gpu), GPU: gpu, MemoryBytes: memory,
			Runs: runs}
	}
	const gib = 1 << 30
	v := predict.Vary{Name: "batch_size", Low: 1, High: 512, Step: 1}
	spare := func(r predict.FitRun, bytes int64) predict.FitRun {
		r.Run.SpareBytes = &bytes
		return r
	}
	margin := func(bytes int64, s predict.FitSearch) predict.FitSearch {
		s.MarginBytes = bytes
		return s
	}
	stopped := one("dpsgd", "Tesla T4", 14*gib, run(1, true, gib))
	stopped.Stopped = "it was interrupted"
	some := one("ghost", "Tesla T4", 14*gib, run(1, true, gib), run(16, false, 13*gib), run(8, true, 12*gib))
	some.Only, some.Barred = []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512},
		"physical_batch_size must be a divisor of batch_size 512, not 3"
	most := one("dpsgd", "Tesla T4", 14*gib, run(2, true, gib), run(60, true, 13*gib))
	most.Barred = "physical_batch_size must be a divisor of batch_size 512, not 3"
	for i := range int64(30) {
		most.Only = append(most.Only, 2*i+2)
	}
	many := []predict.FitSearch{}
	for i := range int64(11) {
		many = append(many, one(fmt.Sprintf("a-method-of-a-name-that-is-long-%d-按样本", i), "NVIDIA A100-SXM4-40GB",
			39*gib, run(1, true, gib+i<<20), run(512, false, 38*gib), run(100+i, true, 30*gib+i*gib/2)))
	}
	return map[string]predict.FitDocument{
		"grid": predict.Fit(v, []predict.FitSearch{
			one("vanilla", "NVIDIA H100 80GB HBM3", 79*gib, run(1, true, 2*gib), run(512, true, 60*gib)),
			one("vanilla", "Tesla T4", 14*gib, run(1, true, 2*gib), run(512, false, 13*gib), run(96, true, 12*gib),
				run(97, false, 13*gib)),
			one("dpsgd", "NVIDIA H100 80GB HBM3", 79*gib, run(1, true, 3*gib), run(40, false, 78*gib),
				run(41, true, 70*gib), run(42, false, 78*gib)), stopped}),
		"some": predict.Fit(predict.Vary{Name: "physical_batch_size", Low: 1, High: 512, Step: 1},
			[]predict.FitSearch{some, most}),
		"none":  predict.Fit(v, []predict.FitSearch{one("ghost", "Tesla T4", 1<<20, run(1, false, 1<<20))}),
		"empty": predict.Fit(v, nil),
		"many":  predict.Fit(v, many),
		// Three of these memories are nearly equal and one is far smaller. Some curves end where the picture names a
		// memory.
		"near": predict.Fit(v, []predict.FitSearch{one("vanilla", "A", 79*gib, run(1, true, gib), run(512, false, gib)),
			one("vanilla", "B", 79*gib+gib/4, run(1, true, gib), run(512, true, 79*gib)),
			one("vanilla", "C", 80*gib, run(1, true, gib), run(512, false, gib)), one("vanilla", "D", gib/4,
				run(1, true, gib/8), run(2, false, gib/8))}),
		"margin": predict.Fit(v, []predict.FitSearch{
			margin(gib, one("vanilla", "Tesla T4", 14*gib, spare(run(1, true, gib), 13*gib),
				spare(run(90, true, 12*gib), 2*gib), spare(run(100, true, 14*gib), 0), run(101, false, 13*gib))),
			one("vanilla", "NVIDIA H200", 139*gib, spare(run(1, true, gib), 138*gib), spare(run(100, true, 14*gib),
				125*gib), spare(run(512, true, 100*gib), 39*gib)),
			margin(2*gib, one("ghost", "Tesla T4", 14*gib, spare(run(1, true, 13*gib), gib), run(2, false, gib))),
			margin(gib, one("ghost", "NVIDIA H200", 139*gib, spare(run(1, true, gib), 138*gib), spare(run(512, true,
				30*gib), 109*gib)))}),
		"one": predict.Fit(predict.Vary{Name: "seq_len", Low: 7, High: 7, Step: 1},
			[]predict.FitSearch{one("train", "NVIDIA H200", 139*gib, run(7, true, 3000))}),
	}
}

// For any search, no text of the picture overlaps another text, a curve or a point, or leaves the picture. Every tried
// value has a point in the plot.
func TestFitFigure(t *testing.T) {
	for name, doc := range searches() {
		f := report.FitFigure(doc)
		c, err := f.Canvas()
		if err != nil {
			t.Fatal(err)
		}
		if bad := append(c.Misplaced(), c.Covered()...); bad != nil {
			t.Errorf("%s: %v", name, bad)
		}
		// The plot names the memory of each device that a curve reaches.
		for _, s := range f.Picture.(*figure.Fit).Series[:min(8, len(doc.Cells))] {
			named := slices.ContainsFunc(c.Labels, func(l canvas.Label) bool {
				return l.Text == "memory "+table.Size(s.Limit)
			})
			if !named && slices.ContainsFunc(s.Points, func(p figure.FitPoint) bool { return !p.Fits }) {
				t.Errorf("%s: the memory of %s has no name", name, s.Label)
			}
		}
		want := 0
		for i := range doc.Cells[:min(8, len(doc.Cells))] {
			want += len(doc.Cells[i].Probes)
		}
		if len(c.Shapes) != want {
			t.Errorf("%s: %d shapes of %d values", name, len(c.Shapes), want)
		}
		goldenGeometry(t, "fit-"+name, f)
	}
}

// If options allow only some values, the table and the picture list the allowed values. If many values are allowed, the
// table and the picture list the first ones and the last.
func TestFitSaysWhichValuesAreAllowed(t *testing.T) {
	doc := searches()["some"]
	want := []string{"ghost: physical_batch_size was sought among the values that the options allow, 1, 2, 4, 8, 16, " +
		"32, 64, 128, 256, 512: physical_batch_size must be a divisor of batch_size 512, not 3",
		"dpsgd: physical_batch_size was sought among the values that the options allow, 2, 4, 6, 8, 10, 12, 14, 16, " +
			"18, 20, …, 60: physical_batch_size must be a divisor of batch_size 512, not 3",
		"dpsgd on Tesla T4 with 14,336.00 MiB for its tensors: every value tried fits, also physical_batch_size " +
			"60, the highest asked for"}
	for _, top := range []bool{false, true} { // top says that the options allow no higher value
		doc.Cells[1].Top = top
		if got := report.FitTables(doc)[0].Rows[1][4].Text; (got == "60") != top || (got == "60 or more") == top {
			t.Errorf("the largest of all that are allowed is %q, and none is above: %t", got, top)
		}
	}
	picture, ok := report.FitFigure(doc).Picture.(*figure.Fit)
	for _, w := range want {
		if !ok || !slices.Contains(report.FitTables(doc)[0].Notes, w) || !slices.Contains(picture.Notes, w) {
			t.Errorf("%q is not said: %q", w, report.FitTables(doc)[0].Notes)
		}
	}
}

// A value that does not fit has its point on the line of the device's memory. A value that fits has its point at its
// reserved bytes, on the same scale.
func TestFitPointsStandAtTheirBytes(t *testing.T) {
	f := figure.Figure{Name: "fit", Picture: &figure.Fit{Vary: "n",
		Series: []figure.FitSeries{{Label: "x", Limit: 1000 << 20, Points: []figure.FitPoint{
			{Value: 10, Reserved: 250 << 20, Fits: true}, {Value: 20, Reserved: 500 << 20, Fits: true},
			{Value: 40, Reserved: 900 << 20}}}}}}
	c, err := f.Canvas()
	if err != nil || len(c.Shapes) != 3 {
		t.Fatalf("%d shapes, %v", len(c.Shapes), err)
	}
	bottom, left := c.Shapes[0].Within.Y1, c.Shapes[0].Within.X0
	for i, want := range []float64{250, 500, 1000} {
		height, across := bottom-c.Shapes[i].Box.Y0, c.Shapes[i].Box.X0-left
		if unit := (bottom - c.Shapes[0].Box.Y0) / 250; height/unit < want-0.5 || height/unit > want+0.5 {
			t.Errorf("point %d stands at %.1f, want %.0f", i, height/unit, want)
		}
		if unit := (c.Shapes[0].Box.X0 - left) / 10; across/unit < []float64{10, 20, 40}[i]-0.1 ||
			across/unit > []float64{10, 20, 40}[i]+0.1 {
			t.Errorf("point %d stands at the value %.1f", i, across/unit)
		}
	}
}

// If curves coincide, each of them is visible: a lower curve shows around the edges of the curve on top.
func TestFitCurvesBeneathAreSeen(t *testing.T) {
	points := []figure.FitPoint{{Value: 10, Reserved: 250 << 20, Fits: true}, {Value: 40, Reserved: 1000 << 20,
		Fits: true}}
	series := []figure.FitSeries{{Label: "whole", Limit: 2 << 30, Points: points}, {Label: "same", Limit: 2 << 30,
		Points: points},
		{Label: "part", Limit: 700 << 20, Points: []figure.FitPoint{points[0], {Value: 20, Reserved: 500 << 20,
			Fits: true}, {Value: 40}}}, {Label: "on top", Limit: 2 << 30, Points: points}}
	f := figure.Figure{Name: "fit", Picture: &figure.Fit{Vary: "n", Series: series}}
	c, err := f.Canvas()
	if err != nil {
		t.Fatal(err)
	}
	var drawn bytes.Buffer
	if err := f.WritePNG(&drawn); err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(&drawn)
	if err != nil {
		t.Fatal(err)
	}
	plot, scale := c.Shapes[0].Within, float64(picture.Bounds().Dx())/c.Width
	// The point (x, y) is halfway between the first two values of the curve "part", where all curves coincide.
	x, y := int(scale*(plot.X0+15*(c.Shapes[0].Box.X0-plot.X0)/10)), int(scale*(plot.Y1-1.5*(plot.Y1-c.Shapes[0].Box.Y0)))
	seen := map[color.Color]bool{}
	for dy := -12; dy <= 12; dy++ {
		r, g, b, _ := picture.At(x, y+dy).RGBA()
		seen[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 255}] = true
	}
	for i, want := range []color.RGBA{{0x20, 0x4d, 0x8b, 255}, {0xe1, 0x61, 0x14, 255}, {0x58, 0xb7, 0x93, 255},
		{0x73, 0x46, 0xa5, 255}} {
		if !seen[want] {
			t.Errorf("%s is not seen", series[i].Label)
		}
	}
}

// SaveFit overwrites the output of an earlier search only if the new search has all runs of the earlier one. A search
// has all of these runs if it is the same search, or the rest of an interrupted search. Any other search writes its
// tables beside the earlier output.
func TestFitFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fit-n")
	doc := func(runs ...string) *predict.FitDocument {
		c := predict.FitCell{Outcome: predict.FitNone}
		for _, id := range runs {
			c.Probes = append(c.Probes, predict.FitProbe{RunID: id})
		}
		return &predict.FitDocument{Schema: predict.FitSchema, Vary: predict.Vary{Name: "n", Low: 1, High: 8, Step: 1},
			Cells: []predict.FitCell{c}}
	}
	for _, c := range []struct {
		what, folder string
		doc          *predict.FitDocument
	}{
		{"the first", dir, doc("r1", "r2")},
		{"the same", dir, doc("r2", "r1")},
		{"the same, further", dir, doc("r1", "r2", "r3")},
		{"a part of it", dir + "-2", doc("r1", "r2")},
		{"another", dir + "-3", doc("r4")},
		{"the first again", dir, doc("r1", "r2", "r3")},
		{"both", dir, doc("r1", "r2", "r3", "r4")},
	} {
		got, err := report.SaveFit(dir, *c.doc)
		if err != nil {
			t.Fatal(err)
		}
		if got != c.folder {
			t.Errorf("%s: %s, want %s", c.what, got, c.folder)
		}
	}
	var outputs []string
	for _, folder := range []string{dir, dir + "-2", dir + "-3", dir + "-4"} {
		outputs = append(outputs, folder, filepath.Join(folder, "fit.json"))
	}
	if got := report.FitOutputs(dir); !slices.Equal(got, outputs) {
		t.Errorf("%q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "fit.json"), []byte("no search"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := report.SaveFit(dir, *doc("r9")); err != nil || got != dir+"-4" {
		t.Errorf("beside a file that is no search's: %s, %v", got, err)
	}
}

func TestFitTables(t *testing.T) {
	text := func(name string) string {
		var b bytes.Buffer
		if err := table.Write(&b, "table", report.FitTables(searches()[name])...); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for name, wants := range map[string][]string{
		"grid": {"Largest batch_size that fits", "512 or more", "1, then stopped", "batch_size 41 fits, though 40 does not",
			"was interrupted", "confidence close: it was read", "such cases were off"},
		"margin": {"Largest batch_size that leaves the margin", "vanilla        90  512 or more\nghost        none  " +
			"512 or more\n", "margin: what should stay free of the memory", "14,336.00        0.00           101    " +
			"1,024.00                      90       2,048.00     4  close"},
		"none": {"none", "nothing fits: not even batch_size 1"},
	} {
		got := text(name)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}
	// The answer of a single search is printed as a sentence. If there are several searches, the grid has all answers.
	one := predict.Fit(predict.Vary{Name: "n", Low: 1, High: 9, Step: 1},
		[]predict.FitSearch{{Method: "train", GPU: "x", MemoryBytes: 24 << 30,
			Runs: []predict.FitRun{{Value: 3, Run: predict.PredictionRun{Fits: new(true)}},
				{Value: 4, Run: predict.PredictionRun{Fits: new(false)}}}}})
	var answer bytes.Buffer
	if err := table.Write(&answer, "table", report.FitTables(one)...); err != nil {
		t.Fatal(err)
	}
	const sentence = "note: train on x with 24,576.00 MiB for its tensors: n 3 is the largest seen to fit, 4 does " +
		"not fit\n"
	if !strings.Contains(answer.String(), sentence) || strings.Contains(text("grid"), "is the largest seen to fit, ") {
		t.Errorf("no %q in\n%s", sentence, answer.String())
	}
	// If the run of a value gave no answer, a note names the value once. The note stands beside the answer, or says
	// what stopped the search.
	run := func(value int64, fits *bool) predict.FitRun {
		r := predict.FitRun{Value: value, Run: predict.PredictionRun{Fits: fits}}
		if fits == nil {
			r.Run.Because = predict.Because{Cause: predict.CauseEnded, Status: "failed", Reason: "ValueError"}
		}
		return r
	}
	for stopped, want := range map[string]string{
		"": "note: train: n 2 has no answer, since its run ended for another reason than memory (failed: " +
			"ValueError); the result does not depend on it",
		"n 2 ended for another reason than memory: failed: ValueError": "the search stopped at n 3, which fits: n " +
			"2 ended for another reason than memory: failed: ValueError",
	} {
		doc := predict.Fit(predict.Vary{Name: "n", Low: 1, High: 3, Step: 1},
			[]predict.FitSearch{{Method: "train", GPU: "x", MemoryBytes: 1 << 30, Stopped: stopped,
				Runs: []predict.FitRun{run(1, new(true)), run(3, new(true)), run(2, nil)}}})
		var b bytes.Buffer
		if err := table.Write(&b, "table", report.FitTables(doc)...); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); strings.Count(got, "ValueError") != 1 || !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	dir := filepath.Join(t.TempDir(), "out")
	if folder, err := report.SaveFit(dir, searches()["grid"]); err != nil || folder != dir {
		t.Fatalf("%s, %v", folder, err)
	}
	written, err := os.ReadDir(dir)
	if err != nil || len(written) != 8 {
		t.Fatalf("%q, %v", written, err)
	}
	for _, f := range written {
		if st, err := f.Info(); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", f.Name(), err)
		}
	}
}
