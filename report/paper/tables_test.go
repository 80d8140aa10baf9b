package paper_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/analyze/timing"
	"github.com/dpsight/dpsight/analyze/trend"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/paper"
	"github.com/dpsight/dpsight/schemas"
)

// restudied changes each run of a study with change, and then compares the runs again.
func restudied(m *paper.Model, change func(i int)) {
	list := slices.Clone(m.Study.Runs)
	m.Study.Runs = list
	for i := range list {
		change(i)
	}
	m.Study = compare.NewStudy(list, &list[0])
}

// Every number of the main tables, of the components and of the phases is the number of the documents at the same
// place. The numbers are peaks, differences, times, rates and energies of experiments, and bytes of categories.
func TestTablesAreTheDocuments(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"trainers", "lora", "headline-batch"} {
		dir, m := write(t, example, nil)
		doc := document(t, &m)
		p := exhibits.Arrange(&m.Study, nil, nil)
		heads, rows := texRows(t, read(t, dir, "tables", "main.tex"))
		at := 0
		for _, g := range p.Groups {
			for _, e := range g.Entries {
				i := slices.IndexFunc(doc.Overhead.Cells, func(c map[string]any) bool { return c["run_id"] == e.RunID })
				if i < 0 || at >= len(rows) {
					t.Fatalf("%s: no cell, or no row, is of %s", example, e.RunID)
				}
				mainRow(t, example+", "+e.Label, heads, rows[at], doc.Overhead.Cells[i], e.IsBaseline())
				at++
			}
		}
		if at != len(rows) {
			t.Errorf("%s: %d rows of %d experiments", example, len(rows), at)
		}
		partsAre(t, example, dir, &m, p.Last())
	}
}

// mainRow checks a row of a main table against the cell of the overhead document.
func mainRow(t *testing.T, what string, heads []string, row texRow, cell map[string]any, baseline bool) {
	t.Helper()
	compared := func(v any) any {
		if baseline {
			return nil
		}
		return v
	}
	units := map[string]int64{"GiB": 1 << 30, "s": 1000, "ms": 1, "kJ": 1000, "J": 1}
	for c, text := range row.cells {
		head := heads[c+1]
		what := what + ", " + head
		unit, _, _ := strings.Cut(head, "/")
		switch {
		case head == "GiB":
			holds(t, what, text, cell["peak_bytes"], 1<<30, 1)
		case head == `\Delta GiB`:
			holds(t, what, text, compared(cell["peak_delta_bytes"]), 1<<30, 1)
		case head == `\Delta GiB, freed`:
			holds(t, what, text, compared(cell["freed_delta_bytes"]), 1<<30, 1)
		case head == `\Delta \%`:
			var v any
			if ratio, ok := compared(cell["peak_ratio"]).(json.Number); ok {
				x, _ := new(big.Rat).SetString(ratio.String())
				x.Mul(x.Sub(x, big.NewRat(1, 1)), big.NewRat(100, 1))
				v = json.Number(x.FloatString(14))
			}
			holds(t, what, text, v, 1, 1)
		case strings.HasPrefix(head, "slowdown"):
			holds(t, what, text, cell["step_ratio"], 1, 1)
		case head == "tokens/s":
			rateHolds(t, what, text, cell["tokens_per_s"])
		case head == "samples/s":
			rateHolds(t, what, text, cell["samples_per_s"])
		case unit == "s" || unit == "ms":
			holds(t, what, text, cell["step_ms"].(map[string]any)["median"], units[unit], 1)
		case unit == "kJ" || unit == "J":
			holds(t, what, text, cell["joules_per_step"], units[unit], 1)
		default:
			t.Errorf("%s: the column is not known", what)
		}
	}
}

// rateHolds does the same as [holds] for a rate, which is printed with four significant digits.
func rateHolds(t *testing.T, what, text string, v any) {
	t.Helper()
	if n, is := v.(json.Number); is {
		if x, err := n.Float64(); err == nil && x >= 10_000 {
			four, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 3, 64), 64)
			v = json.Number(strconv.FormatFloat(four, 'f', 0, 64))
		}
	}
	holds(t, what, text, v, 1, 1)
}

// partsAre checks a group's tables of components and of phases against the breakdown document and the phases document.
func partsAre(t *testing.T, example, dir string, m *paper.Model, g *exhibits.Group) {
	t.Helper()
	doc := document(t, m)
	of := func(runs []map[string]any, id string) map[string]any {
		i := slices.IndexFunc(runs, func(r map[string]any) bool { return r["run_id"] == id })
		if i < 0 {
			t.Fatalf("%s: no document has %s", example, id)
		}
		return runs[i]
	}
	if c := exhibits.ComponentsOf(g); len(c.Entries) > 0 {
		_, rows := texRows(t, read(t, dir, "tables", "components.tex"))
		var kinds []string
		for _, part := range c.Parts {
			kinds = append(kinds, part.Category)
			if part.Category == schemas.Activations && slices.Max(c.HeldToo) > 0 {
				kinds = append(kinds, "held")
			}
		}
		if slices.Max(c.Rest) > 0 {
			kinds = append(kinds, "rest")
		}
		kinds = append(kinds, "peak")
		if len(kinds) != len(rows) {
			t.Fatalf("%s: %d rows of components, not %d", example, len(rows), len(kinds))
		}
		for i, e := range c.Entries {
			device := of(doc.Breakdown, e.RunID)["devices"].([]any)[0].(map[string]any)
			bytes, rest := map[string]json.Number{"peak": device["allocated_bytes"].(json.Number)}, int64(0)
			for _, x := range device["categories"].([]any) {
				category := x.(map[string]any)
				n := category["bytes"].(json.Number)
				name := category["category"].(string)
				bytes[name] = n
				if shared, ok := category["shared_with"].(map[string]any); ok && name == schemas.HookActivations {
					if too, ok := shared[schemas.Activations].(json.Number); ok {
						bytes["held"] = too
					}
				}
				if v, _ := n.Int64(); !slices.Contains(kinds, name) {
					rest += v
				}
			}
			bytes["rest"] = json.Number(strconv.FormatInt(rest, 10))
			for k, kind := range kinds {
				v, has := bytes[kind]
				if !has {
					v = "0"
				}
				holds(t, example+", "+e.Label+", "+kind, rows[k].cells[i], v, 1<<30, 1)
			}
		}
	}
	table := read(t, dir, "tables", "phases.tex")
	_, rows := texRows(t, table)
	p := exhibits.PhasesOf(g)
	unit := int64(1)
	if strings.Contains(table, "GPU time (s/step)") {
		unit = 1000
	}
	blocks := 0
	check := func(json string, each int64, value func(map[string]any) any) {
		for k, r := range p.Rows {
			for i, e := range p.Entries {
				var v any
				for _, x := range of(doc.Phases, e.RunID)["phases"].([]any) {
					if phase := x.(map[string]any); phase["phase"] == r.Phase {
						v = value(phase)
					}
				}
				if v != nil || !slices.ContainsFunc(p.Rows, func(o exhibits.PhaseRow) bool { return o.Pass }) {
					holds(t, example+", "+e.Label+", "+json+" of "+r.Phase, rows[blocks+k].cells[i], v, each, 1)
				}
			}
		}
		blocks += len(p.Rows)
	}
	if p.Sized {
		check("peak", 1<<30, func(phase map[string]any) any { return phase["peak_bytes"] })
	}
	repeated := slices.ContainsFunc(p.Entries, func(e exhibits.Entry) bool { return e.Good > 1 })
	if p.Timed && !repeated { // the time of repeats is a median over runs, which no document of a single run has
		check("time", unit, func(phase map[string]any) any {
			if gpu, timed := phase["gpu_ms"].(map[string]any); timed {
				return gpu["median"]
			}
			return nil
		})
	}
	if blocks == 0 {
		t.Errorf("%s: nothing of phases was looked at", example)
	}
}

// The figure of revisions has the same peaks as compare --over revision prints.
func TestTrendIsTheDocument(t *testing.T) {
	t.Parallel()
	dir, m := write(t, "quick", func(m *paper.Model) {
		list := slices.Clone(m.Study.Runs)
		for i := range m.Study.Runs {
			later := m.Study.Runs[i]
			later.RunID += "-later"
			later.Started = later.Started.Add(time.Hour)
			if later.PeakBytes != nil {
				later.PeakBytes = new(*later.PeakBytes + int64(i+1)<<20)
			}
			list = append(list, later)
		}
		for i := range list {
			list[i].Origin.Git = &schemas.Git{Revision: strings.Repeat("1", 40)}
			if i >= len(m.Study.Runs) {
				list[i].Origin.Git = &schemas.Git{Revision: strings.Repeat("2", 40)}
			}
		}
		m.Study.Runs = list
		m.Trend = exhibits.RevisionsOf(list)
	})
	doc, err := trend.Of(m.Study.Runs, trend.Revision, compare.Metric{Name: compare.MetricPeak})
	if err != nil {
		t.Fatal(err)
	}
	want := map[[2]string]int{}
	for _, e := range doc.Experiments {
		for _, p := range e.Points {
			if p.Value != nil {
				want[[2]string{*p.Revision, strconv.FormatInt(int64(*p.Value), 10)}]++
			}
		}
	}
	rows := readCSV(t, filepath.Join(dir, "data", "trend.csv"))
	for _, row := range rows[1:] {
		key := [2]string{row[1], row[2]}
		if want[key]--; want[key] < 0 {
			t.Errorf("%q is no value of the document", row)
		}
	}
	for key, n := range want {
		if n > 0 {
			t.Errorf("the figure lacks %q", key)
		}
	}
	if len(rows) < 5 {
		t.Errorf("only %d rows", len(rows))
	}
}

// If a page has no room for a column, captions and notes do not mention the column.
func TestCaptionsFollowTheColumns(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "headline", func(m *paper.Model) { m.Config.Widths = paper.Widths{Column: 5, Page: 7} })
	text := read(t, dir, "tables", "main.txt")
	for column, said := range map[string]string{"J/step": "nergy", "freed": "freed `.grad`", "tokens/s": "tokens/s is",
		"Time": "time"} {
		if strings.Contains(text, "Energy,") || !strings.Contains(read(t, dir, "README.md"), "table main has no room for") {
			t.Fatalf("the page has room for all:\n%s", text)
		}
		if _, below, _ := strings.Cut(text, "\n\n"); !strings.Contains(below, column) && strings.Contains(text, said) {
			t.Errorf("there is no %s, and the text speaks of it:\n%s", column, text)
		}
	}
}

// A dash in a table means that there is nothing to compare with, no such phase or no bytes. An empty cell means that
// the value is unknown, and the legend says so.
func TestUnknownIsNoDash(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "headline", func(m *paper.Model) {
		restudied(m, func(i int) {
			if s := &m.Study.Runs[i]; s.Method() == "ghost" {
				s.StepMS, s.TokensPerS, s.SamplesPerS, s.JoulesPerStep, s.PhaseTimes = nil, nil, nil, nil, nil
			}
		})
	})
	heads, rows := texRows(t, read(t, dir, "tables", "main.tex"))
	for _, r := range rows {
		for c, text := range r.cells {
			compares := strings.HasPrefix(heads[c+1], `\Delta`)
			equal := r.label == "Per-sample gradients" && strings.HasSuffix(heads[c+1], "freed")
			if dash := text == "--"; dash != (compares && r.label == "Non-private" || equal) {
				t.Errorf("%s of %s is %q", heads[c+1], r.label, text)
			}
			if empty := text == ""; empty != (r.label == "Ghost clipping" && !compares && heads[c+1] != "GiB") {
				t.Errorf("%s of %s is %q", heads[c+1], r.label, text)
			}
		}
	}
	for name, want := range map[string]bool{"main": true, "phases": true, "components": false} {
		if has := strings.Contains(read(t, dir, "tables", name+".txt"), "Empty: not known."); has != want {
			t.Errorf("the legend of %s says what empty is: %v", name, has)
		}
	}
}

// If a difference is smaller than half of the last digit, the table prints a bound with the difference's sign, such as
// <0.01. If there is no difference, it prints a dash.
func TestSmallDifferencesHaveSigns(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "headline", func(m *paper.Model) {
		base := *m.Study.Runs[0].PeakBytes
		restudied(m, func(i int) {
			by := int64(1-2*(i%2)) * int64(i) * 1000
			if m.Study.Runs[i].Method() == "dpsgd" {
				by = 0
			}
			m.Study.Runs[i].PeakBytes = new(base + by)
			m.Study.Runs[i].Kept = nil
		})
	})
	_, rows := texRows(t, read(t, dir, "tables", "main.tex"))
	signs := map[string]int{}
	for _, r := range rows {
		signs[r.cells[1]]++
	}
	if signs["<0.01"] == 0 || signs[">-0.01"] == 0 || signs["--"] != 2 || len(signs) != 3 {
		t.Errorf("%v", signs)
	}
	text := read(t, dir, "tables", "main.txt")
	if !strings.Contains(text, " >−0.01 ") || !strings.Contains(text, " <0.01 ") {
		t.Error(text)
	}
}

// Times are printed with the digits that they need. A step of less than a second has three digits after the point. The
// longest phase never prints like a shorter one.
func TestTimesHaveDigits(t *testing.T) {
	t.Parallel()
	for example, want := range map[string][2]string{
		"trainers":       {"main", `(?m)^Non-private .* 0\.\d{3} +1\.00 `},
		"headline-batch": {"phases", `(?m)^Forward +\d+\.\d `},
		"headline":       {"main", `(?m)^Non-private .* 4\.\d\d +1\.00 `},
	} {
		dir, _ := write(t, example, nil)
		if text := read(t, dir, "tables", want[0]+".txt"); !regexp.MustCompile(want[1]).MatchString(text) {
			t.Errorf("%s:\n%s", example, text)
		} else if example == "headline" && !strings.Contains(text, "**–**") {
			t.Errorf("no dash is the best:\n%s", text)
		}
	}
}

// If a column has only one value, it compares nothing, so the table leaves it out. README.md lists the columns that are
// left out.
func TestColumnsOfOneValue(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "headline-batch", nil)
	heads, _ := texRows(t, read(t, dir, "tables", "main.tex"))
	readme := read(t, dir, "README.md")
	if slices.Contains(heads, "J/step") || !strings.Contains(readme,
		"column energy of table main: only 1 of 11 experiments has a value") {
		t.Errorf("%q\n%s", heads, readme)
	}
}

// If no run trains privately, the paper draws no Pareto front and calls nothing private, even if some runs compute
// norms.
func TestFrontsAreOfPrivateRuns(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"lora", "headline"} {
		dir, _ := write(t, example, func(m *paper.Model) {
			if example == "headline" {
				m.Config.Rows = []string{"vanilla", "norm_only"}
				restudied(m, func(int) {})
			}
		})
		for _, name := range []string{"captions.tex", "main.tex"} {
			for _, word := range []string{"front", "DP-SGD", "rivate method"} {
				if strings.Contains(read(t, dir, name), word) {
					t.Errorf("%s of %s says %q", name, example, word)
				}
			}
		}
	}
	dir, _ := write(t, "headline", nil)
	if !strings.Contains(captionOf(t, dir, "tradeoff"), "front") {
		t.Error("the private runs have no front")
	}
}

// If the runs' names consist of parameters, the labels of rows are the parameters.
func TestParametersAreLabels(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "lora", nil)
	_, rows := texRows(t, read(t, dir, "tables", "main.tex"))
	for i, want := range []string{"Rank 4", "Rank 16", "Rank 64"} {
		if rows[i].label != want {
			t.Errorf("%q, not %q", rows[i].label, want)
		}
	}
}

// The table of components has a row for gradients, however small they are. A note says that they are mostly the
// previous step's gradients, if the loop keeps these.
func TestGradientsHaveARow(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"headline", "headline-batch"} {
		dir, _ := write(t, example, nil)
		text := read(t, dir, "tables", "components.txt")
		if !regexp.MustCompile(`(?m)^Gradients +–`).MatchString(text) ||
			example == "headline" && !strings.Contains(text, "Gradients are mostly those that .grad keeps of the step before.") {
			t.Errorf("%s:\n%s", example, text)
		}
	}
}

// README.md of a paper has the warnings of the JSON documents, and the reasons for missing figures.
func TestReadmeHasWarningsAndCauses(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"headline", "lora"} {
		dir, m := write(t, example, nil)
		readme := strings.NewReplacer(`\`, "", "&lt;", "<").Replace(read(t, dir, "README.md"))
		doc := report.OverheadTables(m.Study)[0].Document.(compare.OverheadDocument)
		n := 0
		for _, c := range doc.Cells {
			for _, w := range c.Warnings {
				if n++; !strings.Contains(readme, w) {
					t.Errorf("%s: %q is not in README.md", example, w)
				}
			}
		}
		if example == "headline" && n < 6 {
			t.Errorf("%d warnings", n)
		}
		if cause := "figure step of Rank 4, Rank 16, Rank 64: a bare run records no allocations"; example == "lora" &&
			!strings.Contains(readme, cause) {
			t.Error(readme)
		}
	}
}

// The text about the set-up is written as an author would write it. The text has no keys of torch's settings, separates
// thousands, and states the number of parameters. The text states no sampling rate of a fixed list of batches.
func TestSetupIsInWords(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "headline", nil)
	text, _, _ := strings.Cut(read(t, dir, "setup.tex"), "% The runs were")
	for _, want := range []string{"memory-efficient", "cuDNN", "hidden size 2,048", `1.2\,B parameters`,
		"one sequence of 16,384 tokens a step", "Transformer: 20 layers", "$C$"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, never := range []string{"cudnn", "2048", "sample rate", "sampling rate"} {
		if strings.Contains(text, never) {
			t.Errorf("%q in\n%s", never, text)
		}
	}
}

// main.tex inputs a wide main table before the text, so that the table comes to the foot of the first page.
func TestWideTableIsEarly(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "headline", nil)
	text := read(t, dir, "main.tex")
	if at := strings.Index(text, `\input{tables/main}`); at < 0 || at > strings.Index(text, `\section{Setup}`) ||
		strings.Count(text, `\input{tables/main}`) != 1 {
		t.Error(text)
	}
}

// A reader could take some effects for the cost of a method. Captions and notes mention these effects: medians, a
// throttled GPU, gradients that loops keep, batches of one sample, and smaller physical batches.
func TestCaptionsQualify(t *testing.T) {
	t.Parallel()
	slow := func(m *paper.Model) {
		restudied(m, func(i int) {
			s := &m.Study.Runs[i]
			s.Throttled = timing.Throttle{Steps: 4, Sampled: 4}
			if s.Method() == "ghost" {
				s.Throttled.Slowed, s.Throttled.Reasons = 4, schemas.ThrottlePowerCap
			}
		})
	}
	written := map[string]string{}
	for _, want := range []struct {
		example, file, text string
		change              func(*paper.Model)
	}{
		{"seq", "tables/main.txt", "Slowed by power cap: ", slow},
		{"seq", "tables/pivot.txt", "lowed by power cap: ", slow},
		{"seq", "tables/phases.txt", "lowed by power cap: 4 of 4 timed steps of Ghost.", slow},
		{"seq", "captions.tex", `Time of a step by phase, rounded. Slowed by power cap: `, slow},
		{"seq", "tables/pivot.txt", "At batch size 1, Per-sample has the lowest peak", nil},
		{"seq", "captions.tex", `Private loops keep \dpsCode{.grad} of the step before.`, nil},
		{"headline", "tables/main.txt", "At batch size 1, per-sample gradients need the least time and, with book-keeping, " +
			"the least allocated memory; ghost clipping needs the most of both.", nil},
		{"headline", "captions.tex", `On the device, per-sample gradients need the most: torch's cache holds `, nil},
		{"headline", "captions.tex", `Gradients, mostly \dpsCode{.grad} of the step before: the largest addition`, nil},
		{"headline", "captions.tex", "Training with fast gradient clipping peaks in the norm pass.", nil},
		{"headline", "captions.tex", "Computing only norms peaks in ", nil},
		{"headline", "captions.tex", "On the Pareto front at batch size 1: only Per-sample.", nil},
		{"headline", "tables/main.txt", "and the baseline frees it; –: no difference.", nil},
		{"seq", "captions.tex", "the overhead in memory of Ghost grows the most, to ", nil},
		{"seq", "setup.tex", `sequence length $T$\,=\,8,192 and 16,384`, nil},
		{"lora", "tables/main.txt", "Rank 64 adds 9.2\u202f% to the peak of Rank 4, and makes a step 1.10 times as long.",
			nil},
		{"headline-batch", "captions.tex", "At equal physical batches, private training makes a step 2.", nil},
		{"headline-batch", "tables/repeats.txt", "At equal physical batches, private training makes a median step 2.", nil},
		{"headline-batch", "tables/repeats.txt", " ×: ratios of medians.", nil},
		{"headline-batch", "tables/repeats.tex", `{\itshape `, nil},
		{"lora", "main.tex", "shows which phase of a step takes the time.", nil},
		{"trainers", "captions.tex", "of the step before; some free it before the peak.", nil},
		{"headline-batch", "tables/main.txt", "At equal physical batches, private training adds ", nil},
		{"headline-batch", "tables/main.txt", "Per-example loop has physical batches of 1, not of 32", nil},
		{"headline-batch", "captions.tex", "At equal physical batches, private training adds ", nil},
		{"trainers", "captions.tex", "Overhead in memory by sequence length T.", nil},
		{"trainers", "main.tex", "the overhead in memory by batch size B and sequence length T", nil},
		{"trainers", "tables/components.txt", "\nClipping temporaries ", nil},
	} {
		of := fmt.Sprint(want.example, want.change != nil)
		if written[of] == "" {
			written[of], _ = write(t, want.example, want.change)
		}
		if text := read(t, written[of], filepath.FromSlash(want.file)); !strings.Contains(text, want.text) {
			t.Errorf("%s of %s does not say %q:\n%s", want.file, want.example, want.text, text)
		}
	}
}

// If no run of a heat map ran out of memory, the heat map only repeats the numbers of a table. The document leaves out
// such a heat map, unless the user asked for it.
func TestHeatmapBesideItsTable(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		dir, _ := write(t, "seq", func(m *paper.Model) {
			if asked {
				m.Config.Figures = []string{"heatmap"}
			}
		})
		read(t, dir, "figures", "heatmap.tex")
		if shown := strings.Contains(read(t, dir, "main.tex"), `\input{figures/heatmap}`); shown != asked {
			t.Errorf("asked for: %t, shown: %t", asked, shown)
		}
	}
}

// The table marks the best value of a column. The table does not mark a run with smaller physical batches, or energy of
// runs that are not comparable. A difference of 0 bytes, shown as a dash, can be the best.
func TestBestIsComparable(t *testing.T) {
	t.Parallel()
	for example, never := range map[string]string{"headline-batch": `(?m)^Per-example loop.*\*\*`,
		"headline": `(?m)\*\*$`} {
		dir, _ := write(t, example, nil)
		if text := read(t, dir, "tables", "main.txt"); regexp.MustCompile(never).MatchString(text) {
			t.Errorf("%s:\n%s", example, text)
		}
	}
}
