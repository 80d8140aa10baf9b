package paper_test

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/analyze/gate"
	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/analyze/memory"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/analyze/timeline"
	"github.com/dpsight/dpsight/report/paper"
	"github.com/dpsight/dpsight/report/selected"
	"github.com/dpsight/dpsight/schemas"
)

// published is the set of the numbers in JSON documents.
type published map[float64]bool

// take adds all numbers of a document's JSON.
func (p published) take(t *testing.T, doc any) {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err != nil {
			return
		}
		if n, is := token.(json.Number); is {
			v, err := n.Float64()
			if err != nil {
				t.Fatal(err)
			}
			p[v] = true
		}
	}
}

// has reports whether the set has a number. The last digit may differ, since dividing by 1000 changes it.
func (p published) has(v float64) bool {
	for _, near := range []float64{v, math.Nextafter(v, math.Inf(1)), math.Nextafter(v, math.Inf(-1))} {
		if p[near] {
			return true
		}
	}
	return false
}

// documentsOf returns the numbers of all JSON documents from which a paper of a store takes its numbers.
func documentsOf(t *testing.T, s *selected.Source, m *paper.Model) published {
	t.Helper()
	p := published{}
	p.take(t, m.Study.Document())
	all, err := s.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	ladders, err := all.Ladder()
	if err != nil {
		t.Fatal(err)
	}
	p.take(t, ladders)
	by := grouping.By{Dimensions: []grouping.Dimension{grouping.DimensionRole, grouping.DimensionOp}}
	roles, err := all.BreakdownBy(memory.At{}, by)
	if err != nil {
		t.Fatal(err)
	}
	p.take(t, roles)
	for id, v := range m.Views {
		if v.Step == nil {
			continue
		}
		one, err := s.Select([]string{id})
		if err != nil {
			t.Fatal(err)
		}
		for _, within := range []timeline.EventRange{{Step: v.Step.RunPeakAt.Step}, {}} {
			doc, err := one.Timeline(within, 300)
			if err != nil {
				t.Fatal(err)
			}
			p.take(t, doc)
		}
	}
	return p
}

// Every number in a figure's data is a number of a JSON document, or a sum of such numbers. A figure has two kinds of
// sums. In a waterfall, bytes that only move between autograd and DP hooks count as one change. In a step's time, the
// rest is what no phase has.
func TestDataIsInTheDocuments(t *testing.T) {
	t.Parallel()
	for example, kinds := range map[string][]string{
		"headline": {"breakdown", "waterfall", "step-ghost", "steps-ghost", "time", "tradeoff", "roles", "ladder"},
		"seq":      {"lines", "lines-time", "heatmap"},
	} {
		m := configured(t, example, func(c *paper.Config) { c.Steps = paper.AllSteps })
		s := sourceOf(t, example)
		numbers := documentsOf(t, s, &m)
		for _, c := range m.Study.Overhead.Cells {
			var sum int64
			for _, change := range c.Categories {
				if change.Category == schemas.Activations || change.Category == schemas.HookActivations {
					sum += change.DeltaBytes
				}
			}
			numbers[float64(sum)] = true
		}
		dir := t.TempDir()
		if _, err := paper.Write(dir, m); err != nil {
			t.Fatal(err)
		}
		for _, kind := range kinds {
			rows := readCSV(t, filepath.Join(dir, "data", kind+".csv"))
			if kind == "time" {
				wholeSteps(t, rows, numbers)
			}
			checked := 0
			for _, row := range rows[1:] {
				for c, head := range rows[0] {
					if !strings.Contains(head, "bytes") && !strings.HasSuffix(head, "_s") && head != "s" || row[c] == "" ||
						row[2] == "rest" {
						continue
					}
					v, err := strconv.ParseFloat(row[c], 64)
					if err != nil {
						t.Fatal(err)
					}
					if !strings.Contains(head, "bytes") {
						v *= 1000
					}
					if checked++; !numbers.has(v) {
						t.Errorf("%s, %s of %v: %s is in no document", kind, head, row[:2], row[c])
					}
				}
			}
			if checked < 4 {
				t.Errorf("%s of %s has %d numbers", kind, example, checked)
			}
		}
	}
}

// wholeSteps checks that each bar's phases and rest sum to the time of a step in the documents.
func wholeSteps(t *testing.T, rows [][]string, numbers published) {
	t.Helper()
	sums := map[string]float64{}
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		sums[row[0]+row[1]] += v * 1000
	}
	for bar, sum := range sums {
		near := false
		for v := range numbers {
			near = near || math.Abs(v-sum) <= 1e-9*sum
		}
		if !near {
			t.Errorf("the phases of %s sum to %v ms, and no step takes that", bar, sum)
		}
	}
}

func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) < 2 {
		t.Fatalf("%s: %d rows, %v", path, len(rows), err)
	}
	return rows
}

// The pivot table has the figures that the overhead document has for each setting.
func TestPivotIsTheDocument(t *testing.T) {
	t.Parallel()
	dir, m := write(t, "seq", nil)
	heads, rows := texRows(t, read(t, dir, "tables", "pivot.tex"))
	doc := document(t, &m)
	methods := map[string]string{"Non-private": "vanilla", "Per-sample": "dpsgd", "Tiled": "flash", "Ghost": "ghost"}
	seen, checked := map[string]int{}, 0
	for _, r := range rows {
		method := methods[r.label]
		block := seen[method]
		seen[method]++
		if method != "vanilla" && block == 0 || method == "vanilla" {
			block = 0
		}
		for c, text := range r.cells {
			length := strings.NewReplacer("T", "", "=", "", ",", "", `\,`, "", "~", "", " ", "").Replace(heads[c+1])
			i := slices.IndexFunc(doc.Overhead.Cells, func(cell map[string]any) bool {
				params := cell["params"].(map[string]any)
				return params["method"] == method && params["seq_len"].(json.Number).String() == length
			})
			if i < 0 {
				t.Fatalf("no experiment is %s at %q", method, length)
			}
			cell := doc.Overhead.Cells[i]
			what := r.label + " at " + length
			switch block {
			case 0:
				holds(t, what, text, cell["peak_bytes"], 1<<30, 1)
			case 1:
				ratio, _ := cell["peak_ratio"].(json.Number).Float64()
				holds(t, what, text, json.Number(big.NewFloat(100*(ratio-1)).Text('f', 12)), 1, 1)
			case 2:
				holds(t, what, text, cell["step_ratio"], 1, 1)
			}
			checked++
		}
	}
	if checked != 2*(4+3+3) {
		t.Errorf("%d cells were looked at", checked)
	}
}

// repeated returns the recorded runs as three repeats each, with different step times.
func repeated(m *paper.Model) (list []analyze.Summary) {
	for i := range m.Study.Runs {
		for k := range 3 {
			s := m.Study.Runs[i]
			s.RunID += "-" + strconv.Itoa(k)
			if s.StepMS != nil {
				step := *s.StepMS
				step.Median *= 1 + 0.013*float64(k)
				s.StepMS = &step
			}
			list = append(list, s)
		}
	}
	return list
}

// The table of repeats has the same medians, fastest and slowest times as the document.
func TestRepeatsAreTheDocument(t *testing.T) {
	t.Parallel()
	dir, m := write(t, "headline", func(m *paper.Model) {
		list := repeated(m)
		m.Study = compare.NewStudy(list, &list[0])
	})
	_, rows := texRows(t, read(t, dir, "tables", "repeats.tex"))
	doc := document(t, &m)
	names := map[string]string{"Non-private": "vanilla", "Per-sample": "dpsgd", "Fast": "fgc", "Tiled": "flash",
		"Book-keeping": "bk", "Ghost": "ghost", "Norms only": "norm_only"}
	if len(rows) != len(names) {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		i := slices.IndexFunc(doc.Overhead.Cells, func(cell map[string]any) bool {
			return cell["params"].(map[string]any)["method"] == names[r.label]
		})
		cell := doc.Overhead.Cells[i]
		step := cell["step_ms"].(map[string]any)
		holds(t, r.label+", peak", r.cells[0], cell["peak_bytes"], 1<<30, 1)
		holds(t, r.label+", step", r.cells[2], step["median"], 1000, 1)
		low, high, _ := strings.Cut(r.cells[3], "--")
		holds(t, r.label+", fastest", low, step["low"], 1000, 1)
		holds(t, r.label+", slowest", high, step["high"], 1000, 1)
		holds(t, r.label+", slowdown", r.cells[4], cell["step_ratio"], 1, 1)
	}
}

// The tables of accuracy and ablation, and the figure of accuracy, have the numbers of the documents of accuracy and
// overhead.
func TestAccuracyAndAblationAreTheDocuments(t *testing.T) {
	t.Parallel()
	var doc predict.AccuracyDocument
	dir, m := write(t, "headline", func(m *paper.Model) {
		var runs, predicted []analyze.Summary
		for i := range m.Study.Runs {
			s := m.Study.Runs[i]
			runs = append(runs, s)
			s.RunID, s.Source = s.RunID+"-p", schemas.Predicted
			s.PeakBytes = new(*s.PeakBytes + int64(i*i)<<26)
			predicted = append(predicted, s)
		}
		doc = predict.Accuracy(gate.BaselineOf(predicted, ""), slices.Concat(runs, predicted), "")
		m.Accuracy = doc.Experiments
		m.Config.Ablation = []string{"ghost", "fgc", "vanilla"}
	})
	_, rows := texRows(t, read(t, dir, "tables", "accuracy.tex"))
	data := readCSV(t, filepath.Join(dir, "data", "accuracy.csv"))
	if len(rows) != len(doc.Experiments) || len(rows) < 6 || len(data) != len(rows)+1 {
		t.Fatalf("%d rows, %d of data, of %d experiments", len(rows), len(data)-1, len(doc.Experiments))
	}
	number := func(v int64) json.Number { return json.Number(strconv.FormatInt(v, 10)) }
	for i, e := range doc.Experiments {
		holds(t, e.Label+", predicted", rows[i].cells[0], number(*e.Allocated.Predicted), 1<<30, 1)
		holds(t, e.Label+", measured", rows[i].cells[1], number(*e.Allocated.Measured), 1<<30, 1)
		switch {
		case *e.Allocated.Predicted == *e.Allocated.Measured:
			if rows[i].cells[2] != "exact" {
				t.Errorf("%s: %s", e.Label, rows[i].cells[2])
			}
		default:
			holds(t, e.Label+", error", rows[i].cells[2],
				json.Number(strconv.FormatFloat(100**e.Allocated.Error, 'f', 12, 64)), 1, 1)
		}
		if data[i+1][1] != number(*e.Allocated.Predicted).String() || data[i+1][2] != number(*e.Allocated.Measured).String() {
			t.Errorf("%s: %v", e.Label, data[i+1])
		}
	}
	_, rows = texRows(t, read(t, dir, "tables", "ablation.tex"))
	var peaks []int64
	for _, name := range m.Config.Ablation {
		i := slices.IndexFunc(m.Study.Cells, func(c compare.Cell) bool { return c.Name == name })
		peaks = append(peaks, *m.Study.Cells[i].PeakBytes)
	}
	if len(rows) != len(peaks) {
		t.Fatalf("%d rows", len(rows))
	}
	for i, peak := range peaks {
		holds(t, "peak", rows[i].cells[0], number(peak), 1<<30, 1)
		if i > 0 {
			holds(t, "change", rows[i].cells[1], number(peak-peaks[i-1]), 1<<30, 1)
			holds(t, "all changes", rows[i].cells[2], number(peak-peaks[0]), 1<<30, 1)
		}
	}
}

// The largest batch of a method is the largest that ended well, whatever the order of the trials. If no larger batch
// ran out of memory, the largest batch is open.
func TestLargestBatch(t *testing.T) {
	t.Parallel()
	m := model(t, "headline")
	run := func(method string, batch int, status string) analyze.Summary {
		i := slices.IndexFunc(m.Study.Runs, func(s analyze.Summary) bool { return s.Method() == method })
		s := m.Study.Runs[i]
		s.RunID, s.Status = method+strconv.Itoa(batch), status
		s.RunFacts = slices.Clone(s.RunFacts)
		for k := range s.RunFacts {
			if s.RunFacts[k].What == "batch_size" {
				s.RunFacts[k].Value = strconv.Itoa(batch)
			}
		}
		return s
	}
	runs := []analyze.Summary{run("vanilla", 8, schemas.StatusOK), run("vanilla", 4, schemas.StatusOK),
		run("ghost", 2, schemas.StatusOK), run("ghost", 4, schemas.StatusOOM), run("ghost", 3, schemas.StatusFailed),
		run("dpsgd", 1, schemas.StatusOOM)}
	got := exhibits.LargestOf(runs)
	want := []exhibits.Largest{{Key: "vanilla", Batch: 8, Open: true}, {Key: "ghost", Batch: 2}, {Key: "dpsgd"}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		if got[i].Key != w.Key || got[i].Batch != w.Batch || got[i].Open != w.Open {
			t.Errorf("%+v, not %+v", got[i], w)
		}
	}
	if none := exhibits.LargestOf(runs[:3]); none != nil {
		t.Errorf("nothing ran out of memory, and the largest are %+v", none)
	}
	m.Largest = got
	dir := t.TempDir()
	if _, err := paper.Write(dir, m); err != nil {
		t.Fatal(err)
	}
	rows := readCSV(t, filepath.Join(dir, "data", "largest.csv"))
	if len(rows) != 4 || rows[1][2] != "8" || rows[1][3] != "true" || rows[2][2] != "0" {
		t.Errorf("%v", rows)
	}
}

// If experiments differ only in their GPU, each GPU is a setting. An experiment is not compared with the baseline of
// another GPU.
func TestGPUsAreSettings(t *testing.T) {
	t.Parallel()
	dir, m := write(t, "headline", func(m *paper.Model) {
		var list []analyze.Summary
		for _, gpu := range []string{"NVIDIA H200", "Tesla T4", "Tesla P40"} {
			for i := range m.Study.Runs {
				s := m.Study.Runs[i]
				if gpu == "Tesla P40" && s.Method() == "vanilla" {
					continue // this setting has no baseline
				}
				s.RunID, s.Key, s.GPU = s.RunID+gpu, s.Key+gpu, gpu
				s.RunFacts = slices.Clone(s.RunFacts)
				for k := range s.RunFacts {
					if s.RunFacts[k].What == exhibits.GPU {
						s.RunFacts[k].Value = gpu
					}
				}
				list = append(list, s)
			}
		}
		m.Study = compare.NewMatchedStudy(list, nil, "")
	})
	arranged := exhibits.Arrange(&m.Study, nil, nil)
	if len(arranged.Groups) != 3 || len(arranged.Methods) != 7 {
		t.Fatalf("%d groups of %q", len(arranged.Groups), arranged.Methods)
	}
	for _, g := range arranged.Groups {
		for _, e := range g.Entries {
			if want := g.Values[0] != "Tesla P40"; (e.Overhead != nil) != want {
				t.Errorf("%s on %s is compared: %v", e.Key, g.Values[0], !want)
			}
		}
	}
	if heads, _ := texRows(t, read(t, dir, "tables", "pivot.tex")); len(heads) != 4 {
		t.Errorf("heads are %q", heads)
	}
}
