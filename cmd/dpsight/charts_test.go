package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/store"
	"github.com/dpsight/dpsight/schemas/units"
)

const chartsPage = "../../docs/migration.md"

var chartsBlock = regexp.MustCompile(`(?s)<!-- charts -->\n.*?<!-- end -->`)

// charted has the figures of one run that two charts show, in bytes: the end of the run's bar of components, and the
// highest point of its timeline. If both charts are right, both figures equal the peak by torch's counters.
type charted struct{ peak, bar, timeline int64 }

// replacedResult has the values of a result file from which the component profiler draws its charts.
type replacedResult struct {
	Config       map[string]float64 `json:"config"`
	PeakMemoryMB float64            `json:"peak_memory_mb"`
	Breakdown    map[string]float64 `json:"breakdown"`
	Snapshots    []struct {
		AllocatedMB float64 `json:"allocated_mb"`
	} `json:"snapshots"`
}

// stackedComponents are the components that the profiler's bars consist of.
var stackedComponents = []string{"model_parameters_mb", "optimizer_states_mb", "gradients_mb", "activation_hooks_mb",
	"norm_samples_mb", "temp_matrices_mb"}

// charted returns the figures that the profiler's charts show: a bar is the sum of the components, and a timeline has a
// point for each snapshot.
func (r replacedResult) charted() charted {
	var c charted
	stack := 0.0
	for _, component := range stackedComponents {
		stack += r.Breakdown[component]
	}
	c.peak, c.bar = mebibytes(r.PeakMemoryMB), mebibytes(stack)
	for _, s := range r.Snapshots {
		c.timeline = max(c.timeline, mebibytes(s.AllocatedMB))
	}
	return c
}

func mebibytes(n float64) int64 { return int64(math.Round(n * (1 << 20))) }

// Compares the component profiler's charts with dpsight's, for the same experiment on the same kind of GPU. The
// profiler's bars end beyond the peak or far below it, and its timeline stays below the peak. dpsight's bars and
// timeline end at the peak, to the byte, and no text overlaps another.
func TestChartsBesideTheReplaced(t *testing.T) {
	theirs := map[string]replacedResult{}
	for _, method := range []string{"vanilla", "ghost"} {
		text, err := os.ReadFile(filepath.Join("testdata", "replaced", method+"_result.json"))
		if err != nil {
			t.Fatal(err)
		}
		var r replacedResult
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		if p := r.Breakdown["peak_allocated_mb"]; p != r.PeakMemoryMB {
			t.Errorf("%s: peaks of %v and %v MiB", method, p, r.PeakMemoryMB)
		}
		theirs[method] = r
	}
	off := func(method string, bar, timeline float64) { // MiB
		c := theirs[method].charted()
		if got := math.Round(float64(c.bar-c.peak) / (1 << 20)); got != bar {
			t.Errorf("%s: the profiler's bar is off by %v MiB, want %v", method, got, bar)
		}
		if got := math.Round(float64(c.timeline-c.peak) / (1 << 20)); got != timeline {
			t.Errorf("%s: the profiler's timeline is off by %v MiB, want %v", method, got, timeline)
		}
	}
	off("ghost", 45_750, -4_176)
	off("vanilla", -38_938, -4_000)
	if b := theirs["vanilla"].Breakdown; b["activation_hooks_mb"] != 0 || b["gradients_mb"] != 0 ||
		b["temp_matrices_mb"] != 0 {
		t.Errorf("the page says that the bar of vanilla has nothing for activations and gradients: %v", b)
	}

	// The profiler's method ghost is dpsight's method norm_only: one backward pass that only computes norms.
	recorded := map[string]string{"vanilla": "vanilla", "ghost": "norm_only"}
	drawn, params := chartedHere(t, filepath.Join("..", "..", "examples", "headline"))
	for method, here := range recorded {
		for size, v := range theirs[method].Config {
			if params[here][size] != v {
				t.Errorf("%s: %s is %v there and %v in %s: another experiment", method, size, v, params[here][size],
					here)
			}
		}
		if c, ok := drawn[here]; !ok || c.bar != c.peak || c.timeline != c.peak {
			t.Errorf("%s: torch's peak is %d B, the bar ends at %d and the timeline's highest is %d (drawn: %t)", here,
				c.peak, c.bar, c.timeline, ok)
		}
	}
	holdChartsPage(t, theirs, drawn)
}

// chartedHere reads the values of a store's charts from their axes, as a person does. chartedHere also returns the
// runs' parameters.
func chartedHere(t *testing.T, folder string) (map[string]charted, map[string]map[string]any) {
	t.Helper()
	var out, errs bytes.Buffer
	s := &streams{out: &out, err: &errs}
	sel, err := s.source("").Select([]string{folder})
	if err != nil {
		t.Fatal(err)
	}
	m, err := sel.Model("")
	if err != nil {
		t.Fatal(err)
	}
	bars := canvasOf(t, &m, "breakdown")
	charts, params := map[string]charted{}, map[string]map[string]any{}
	for i := range m.Study.Cells {
		c := &m.Study.Cells[i]
		if c.Bare() { // nothing is drawn for a bare run
			continue
		}
		at := slices.IndexFunc(sel.Runs, func(r store.Run) bool { return r.ID == c.RunID })
		if at < 0 {
			t.Fatalf("%s is of no run", c.Label)
		}
		is := charted{peak: ingesttest.TorchPeak(t, sel.Runs[at].Dir)}
		is.bar = endOfBar(t, bars, "peak of "+c.Label)
		if parts := endOfBar(t, bars, "categories of "+c.Label); parts != is.bar {
			t.Errorf("%s: the categories end at %d B, their bar at %d", c.Label, parts, is.bar)
		}
		timeline := canvasOf(t, &m, "timeline-"+strings.ReplaceAll(c.Label, "_", "-"))
		// Three marks: the highest drawn point, the line below the diamond, and the diamond.
		is.timeline = topOfTimeline(t, timeline, "allocated of "+c.Label)
		for _, what := range []string{"allocated at the peak of ", "peak of "} {
			if top := topOfTimeline(t, timeline, what+c.Label); top != is.timeline {
				t.Errorf("%s%s is at %d B, the timeline's highest at %d", what, c.Label, top, is.timeline)
			}
		}
		said := func(l canvas.Label) bool {
			return strings.Contains(l.Text, ": peak "+table.Size(is.peak)+" in ")
		}
		if !slices.ContainsFunc(timeline.Labels, said) {
			t.Errorf("%s: nothing above the timeline says a peak of %s", c.Label, table.Size(is.peak))
		}
		charts[c.Label], params[c.Label] = is, c.Params
	}
	return charts, params
}

func canvasOf(t *testing.T, m *report.Model, name string) *canvas.Canvas {
	t.Helper()
	for _, f := range m.Figures() {
		if f.Name != name {
			continue
		}
		legible(t, "headline", f)
		c, err := f.Canvas()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Fatalf("no figure %s", name)
	return nil
}

func shapeOf(t *testing.T, c *canvas.Canvas, what string) canvas.Shape {
	t.Helper()
	at := slices.IndexFunc(c.Shapes, func(m canvas.Shape) bool { return m.What == what })
	if at < 0 {
		t.Fatalf("no mark %q", what)
	}
	return c.Shapes[at]
}

// endOfBar reads the end of a bar from the numbers below its axis.
func endOfBar(t *testing.T, c *canvas.Canvas, what string) int64 {
	t.Helper()
	const below = 30 // logical pixels in which the axis's numbers lie
	m := shapeOf(t, c, what)
	var axis scale
	for _, l := range c.Labels {
		middle := (l.Box.X0 + l.Box.X1) / 2
		if l.Box.Y0 > m.Within.Y1 && l.Box.Y1 < m.Within.Y1+below && middle > m.Within.X0-1 && middle < m.Within.X1+1 {
			axis.add(l.Text, middle)
		}
	}
	return axis.read(t, m.Box.X1)
}

// topOfTimeline reads the height of a curve from the numbers to the left of its panel.
func topOfTimeline(t *testing.T, c *canvas.Canvas, what string) int64 {
	t.Helper()
	m := shapeOf(t, c, what)
	var axis scale
	bottom := 0.0
	for _, l := range c.Labels {
		if text, ok := strings.CutSuffix(l.Text, " GiB"); ok && l.Box.X1 < m.Within.X0 && l.Box.Y1 > m.Within.Y0 &&
			l.Box.Y0 < m.Within.Y1 {
			middle := (l.Box.Y0 + l.Box.Y1) / 2
			bottom = max(bottom, middle)
			axis.add(text, middle)
		}
	}
	// A number is drawn a little off its line. The lowest is beside the axis itself.
	return axis.read(t, m.Box.Y0-m.Within.Y1+bottom)
}

// scale is an axis in GiB: its numbers and their places.
type scale struct{ values, places []float64 }

func (s *scale) add(text string, place float64) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		s.values, s.places = append(s.values, v), append(s.places, place)
	}
}

func (s *scale) read(t *testing.T, place float64) int64 {
	t.Helper()
	last := len(s.values) - 1
	if last < 1 || s.values[0] != 0 {
		t.Fatalf("an axis with the numbers %v", s.values)
	}
	perPixel := s.values[last] / (s.places[last] - s.places[0])
	return int64(math.Round((place - s.places[0]) * perPixel * (1 << 30)))
}

// holdChartsPage checks that the page has this table, or writes it.
func holdChartsPage(t *testing.T, files map[string]replacedResult, here map[string]charted) {
	t.Helper()
	there := map[string]charted{}
	for method, r := range files {
		there[method] = r.charted()
	}
	tab := table.Table{Columns: []table.Column{{Title: "Charts of"}, {Title: "Method"}, {Title: "Peak allocated MiB",
		Right: true}, {Title: "End of the bar", Right: true},
		{Title: "Off by", Right: true}, {Title: "Highest of the timeline", Right: true},
		{Title: "Off by", Right: true}}}
	add := func(tool, method string, c charted) {
		tab.Rows = append(tab.Rows, []table.Cell{table.Text(tool), table.Text(method), table.Bytes(c.peak),
			table.Bytes(c.bar), table.DeltaBytes(c.bar - c.peak),
			table.Bytes(c.timeline), table.DeltaBytes(c.timeline - c.peak)})
	}
	add("the old profiler", "vanilla", there["vanilla"])
	add("the old profiler", "ghost", there["ghost"])
	add("dpsight", "vanilla", here["vanilla"])
	add("dpsight", "norm_only", here["norm_only"])
	tab.Notes = []string{fmt.Sprintf("the old bar is the sum of six components: of ghost, the activations of its "+
		"hooks alone are %s MiB; of vanilla, nothing stands for activations and gradients",
		units.InMiB(mebibytes(files["ghost"].Breakdown["activation_hooks_mb"]))),
		fmt.Sprintf("each tool trains a model of its own code with these sizes: the peaks differ by %s MiB (vanilla) "+
			"and %s MiB (ghost, norm_only), and lie %s and %s MiB above vanilla's",
			units.InMiB(here["vanilla"].peak-there["vanilla"].peak),
			units.InMiB(here["norm_only"].peak-there["ghost"].peak),
			units.InMiB(there["ghost"].peak-there["vanilla"].peak),
			units.InMiB(here["norm_only"].peak-here["vanilla"].peak))}
	page, err := os.ReadFile(chartsPage)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := table.Write(&text, "markdown", tab); err != nil {
		t.Fatal(err)
	}
	shown := 0
	fresh := chartsBlock.ReplaceAllFunc(page, func([]byte) []byte {
		shown++
		return fmt.Appendf(nil, "<!-- charts -->\n%s\n<!-- end -->", text.String())
	})
	switch {
	case shown != 1:
		t.Errorf("%s shows the charts' table %d times", chartsPage, shown)
	case *update:
		if err := os.WriteFile(chartsPage, fresh, 0o644); err != nil {
			t.Fatal(err)
		}
	case !bytes.Equal(fresh, page):
		t.Errorf("%s shows other figures than the charts: go test ./cmd/dpsight -run TestChartsBesideTheReplaced "+
			"-update", chartsPage)
	}
}
