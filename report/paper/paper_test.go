package paper_test

import (
	"encoding/json"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/identity"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/report/paper"
	"github.com/dpsight/dpsight/report/selected"
)

func TestMain(m *testing.M) {
	code := m.Run()
	ingesttest.Remove()
	os.Exit(code)
}

// write writes the paper of a recorded store into a new folder. change changes the paper's model first.
func write(t *testing.T, example string, change func(*paper.Model)) (dir string, m paper.Model) {
	t.Helper()
	dir = t.TempDir()
	m = model(t, example)
	if change != nil {
		change(&m)
	}
	if _, err := paper.Write(dir, m); err != nil {
		t.Fatal(err)
	}
	return dir, m
}

func model(t *testing.T, example string) paper.Model {
	t.Helper()
	return configured(t, example, func(*paper.Config) {})
}

// configured returns the model of a recorded store's paper. set changes the settings first.
func configured(t *testing.T, example string, set func(*paper.Config)) paper.Model {
	t.Helper()
	config, err := paper.ReadConfig("", t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	set(config)
	m, err := sourceOf(t, example).Paper(nil, "", config)
	if err != nil {
		t.Fatal(err)
	}
	m.Command = []string{"dpsight", "paper", example, "-o", "paper"}
	return m
}

func sourceOf(t *testing.T, example string) *selected.Source {
	t.Helper()
	quiet := func(string) {}
	return &selected.Source{Store: ingesttest.Store(t, filepath.Join("..", "..", "examples", example)), Named: true,
		Say: quiet, Note: quiet, Warn: quiet}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// texRow is one row of a LaTeX table. texRow has the row's label and cells, without commands such as bold.
type texRow struct {
	label string
	cells []string
}

var (
	decoration = regexp.MustCompile(`\\(bfseries|itshape|dpsMark|quad) ?|~\\cite\{[^}]*\}|\\tnote\{.\}|[{}$]`)
	emphasis   = regexp.MustCompile(`\\emph\{(.*)\}`)
)

// texRows returns the heads of a LaTeX table, and the rows below the heads.
func texRows(t *testing.T, text string) (heads []string, rows []texRow) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		body, ended := strings.CutSuffix(line, ` \\`)
		if !ended || !strings.Contains(body, " & ") || strings.HasPrefix(body, "&") {
			continue
		}
		parts := strings.Split(body, " & ")
		for i := range parts {
			parts[i] = strings.TrimSpace(decoration.ReplaceAllString(emphasis.ReplaceAllString(parts[i], "$1"), ""))
		}
		if heads == nil {
			heads = parts
			continue
		}
		rows = append(rows, texRow{parts[0], parts[1:]})
	}
	if len(rows) == 0 {
		t.Fatalf("no row is found in\n%s", text)
	}
	return heads, rows
}

// rounded prints a value in a unit with the given number of digits. rounded rounds half to even by exact arithmetic.
func rounded(v, unit *big.Rat, digits int) string {
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
	x := new(big.Rat).Mul(new(big.Rat).Quo(v, unit), scale)
	whole, rest := new(big.Int), new(big.Int)
	whole.QuoRem(new(big.Int).Abs(x.Num()), x.Denom(), rest)
	switch c := new(big.Int).Lsh(rest, 1).Cmp(x.Denom()); {
	case c > 0, c == 0 && whole.Bit(0) == 1:
		whole.Add(whole, big.NewInt(1))
	}
	text := whole.String()
	for len(text) <= digits {
		text = "0" + text
	}
	if digits > 0 {
		text = text[:len(text)-digits] + "." + text[len(text)-digits:]
	}
	if x.Sign() < 0 {
		text = "-" + text
	}
	return text
}

// holds checks that a printed cell has a value of a document, rounded. If the document has no value, v is nil, and the
// cell must be a dash or empty.
func holds(t *testing.T, what, cell string, v any, unit int64, times int64) {
	t.Helper()
	if v == nil {
		if cell != "--" && cell != "" {
			t.Errorf("%s is %q and not known", what, cell)
		}
		return
	}
	value, ok := new(big.Rat).SetString(v.(json.Number).String())
	if !ok {
		t.Fatalf("%s: %v is no number", what, v)
	}
	value.Mul(value, big.NewRat(times, 1))
	digits := 0
	if _, after, has := strings.Cut(cell, "."); has {
		digits = len(after)
	}
	want := rounded(value, big.NewRat(unit, 1), digits)
	got := strings.TrimPrefix(cell, "+")
	switch {
	case strings.HasPrefix(got, "<"):
		if strings.Trim(want, "-0.") != "" || value.Sign() <= 0 {
			t.Errorf("%s is %q, in the document %s", what, cell, value.FloatString(6))
		}
	case strings.HasPrefix(got, ">-"):
		if strings.Trim(want, "-0.") != "" || value.Sign() >= 0 {
			t.Errorf("%s is %q, in the document %s", what, cell, value.FloatString(6))
		}
	case got == "--":
		if value.Sign() != 0 {
			t.Errorf("%s is missing, in the document %s", what, value.FloatString(6))
		}
	case got != want && !(got == "0.00" && value.Sign() == 0):
		t.Errorf("%s is %q, in the document %s: %s", what, cell, value.FloatString(6), want)
	}
}

// document returns the JSON document of a study, as a program would read it.
func document(t *testing.T, m *paper.Model) (doc struct {
	Overhead  struct{ Cells []map[string]any }
	Breakdown []map[string]any
	Phases    []map[string]any
}) {
	t.Helper()
	text, err := json.Marshal(m.Study.Document())
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Every number of the main table is a number of the overhead document, rounded.
func TestMainTableIsTheDocument(t *testing.T) {
	t.Parallel()
	dir, m := write(t, "headline", nil)
	heads, rows := texRows(t, read(t, dir, "tables", "main.tex"))
	doc := document(t, &m)
	labels := map[string]string{"vanilla": "Non-private", "dpsgd": "Per-sample gradients",
		"fgc": "Fast gradient clipping", "ghost": "Ghost clipping", "flash": "Tiled norms", "bk": "Book-keeping",
		"norm_only": "Norms only, not private"}
	if len(rows) != len(doc.Overhead.Cells) || len(rows) != len(labels) {
		t.Fatalf("%d rows of %d experiments", len(rows), len(doc.Overhead.Cells))
	}
	for _, cell := range doc.Overhead.Cells {
		method := cell["params"].(map[string]any)["method"].(string)
		i := slices.IndexFunc(rows, func(r texRow) bool { return r.label == labels[method] })
		if i < 0 {
			t.Errorf("%s has no row", method)
			continue
		}
		for c, text := range rows[i].cells {
			what := method + ", " + heads[c+1]
			compared := func(v any) any { // the baseline is not compared with itself
				if method == "vanilla" {
					return nil
				}
				return v
			}
			switch heads[c+1] {
			case "GiB":
				holds(t, what, text, cell["peak_bytes"], 1<<30, 1)
			case `\Delta GiB`:
				holds(t, what, text, compared(cell["peak_delta_bytes"]), 1<<30, 1)
			case `\Delta \%`:
				ratio, _ := cell["peak_ratio"].(json.Number).Float64()
				if method != "vanilla" {
					holds(t, what, text, json.Number(big.NewFloat(100*(ratio-1)).Text('f', 12)), 1, 1)
				}
			case `\Delta GiB, freed`:
				holds(t, what, text, compared(cell["freed_delta_bytes"]), 1<<30, 1)
			case "s/step":
				holds(t, what, text, cell["step_ms"].(map[string]any)["median"], 1000, 1)
			case `slowdown (\times)`:
				holds(t, what, text, cell["step_ratio"], 1, 1)
			case "tokens/s":
				holds(t, what, text, cell["tokens_per_s"], 1, 1)
			case "kJ/step":
				holds(t, what, text, cell["joules_per_step"], 1000, 1)
			default:
				t.Errorf("nothing is known of the column %q", heads[c+1])
			}
		}
	}
}

// The table of components has the bytes of the breakdown document. The printed values of each column sum to the
// column's peak.
func TestComponentsAreTheDocument(t *testing.T) {
	t.Parallel()
	dir, m := write(t, "headline", nil)
	_, rows := texRows(t, read(t, dir, "tables", "components.tex"))
	doc := document(t, &m)
	order := []string{"vanilla", "dpsgd", "fgc", "flash", "bk", "ghost", "norm_only"}
	names := map[string]string{"Clipping temporaries": "clip_temporaries", "Held by DP hooks only": "hook_activations"}
	for c, method := range order {
		i := slices.IndexFunc(doc.Breakdown, func(r map[string]any) bool {
			return r["name"] == method && len(r["devices"].([]any)) > 0
		})
		device := doc.Breakdown[i]["devices"].([]any)[0].(map[string]any)
		bytes := map[string]json.Number{"peak": device["allocated_bytes"].(json.Number)}
		for _, x := range device["categories"].([]any) {
			category := x.(map[string]any)
			bytes[category["category"].(string)] = category["bytes"].(json.Number)
		}
		for _, r := range rows {
			name := names[r.label]
			if name == "" {
				name = strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(r.label))
			}
			v, has := bytes[name]
			switch {
			case has:
				holds(t, method+", "+r.label, r.cells[c], v, 1<<30, 1)
			case r.label != "Other" && r.label != "of which held by hooks" && r.cells[c] != "--":
				t.Errorf("%s: the document has no %s, and the table %s", method, name, r.cells[c])
			}
		}
	}
}

// The table of phases has the peaks and times of the phases document.
func TestPhasesAreTheDocument(t *testing.T) {
	t.Parallel()
	dir, m := write(t, "headline", nil)
	_, rows := texRows(t, read(t, dir, "tables", "phases.tex"))
	doc := document(t, &m)
	phases := map[string]string{"Forward": "forward", "norm pass": "backward.norm", "gradient pass": "backward.grad",
		"Clip": "clip", "Noise": "noise", "Optimizer": "optimizer"}
	order := []string{"vanilla", "dpsgd", "fgc", "flash", "bk", "ghost", "norm_only"}
	checked := 0
	for c, method := range order {
		i := slices.IndexFunc(doc.Phases, func(r map[string]any) bool { return r["name"] == method })
		byName := map[string]map[string]any{}
		for _, x := range doc.Phases[i]["phases"].([]any) {
			byName[x.(map[string]any)["phase"].(string)] = x.(map[string]any)
		}
		seen := map[string]bool{}
		for _, r := range rows {
			name := phases[r.label]
			if name == "" {
				continue
			}
			phase, has := byName[name]
			var bytes, ms any
			if has {
				bytes = phase["peak_bytes"]
				if gpu, timed := phase["gpu_ms"].(map[string]any); timed {
					ms = gpu["median"]
				}
			}
			if !seen[name] {
				holds(t, method+", peak of "+name, r.cells[c], bytes, 1<<30, 1)
			} else {
				holds(t, method+", time of "+name, r.cells[c], ms, 1000, 1)
			}
			seen[name], checked = true, checked+1
		}
	}
	if checked != 2*len(phases)*len(order) {
		t.Errorf("%d cells were looked at", checked)
	}
}

// If only one method has variants, each variant is a row of the table. The variants are no settings, since the other
// methods have no value for them.
func TestVariantsOfAMethodAreRows(t *testing.T) {
	t.Parallel()
	dir, m := write(t, "headline", func(m *paper.Model) {
		var list []analyze.Summary
		for i := range m.Study.Runs {
			s := m.Study.Runs[i]
			list = append(list, s)
			if s.Method() != "dpsgd" {
				continue
			}
			for k, mode := range []string{"hooks", "functorch"} {
				v := s
				v.RunID, v.Key, v.Params = s.RunID+mode, s.Key+mode, maps.Clone(s.Params)
				v.Params["grad_sample_mode"] = mode
				v.RunFacts = slices.DeleteFunc(slices.Clone(s.RunFacts), func(f identity.Fact) bool {
					return f.What == "grad_sample_mode"
				})
				v.RunFacts = append(v.RunFacts, identity.Fact{What: "grad_sample_mode", Value: mode, Param: true})
				list = append(list[:len(list)-1+k], v)
			}
		}
		m.Study = compare.NewStudy(list, &list[0])
	})
	_, rows := texRows(t, read(t, dir, "tables", "main.tex"))
	var labels []string
	for _, r := range rows {
		labels = append(labels, r.label)
	}
	if len(rows) != len(m.Study.Cells) || !slices.Contains(labels, "Per-sample gradients, hooks") ||
		!slices.Contains(labels, "Per-sample gradients, functorch") {
		t.Errorf("rows are %q", labels)
	}
	if _, err := os.Stat(filepath.Join(dir, "tables", "pivot.tex")); err == nil {
		t.Error("the mode of one method is a setting of all")
	}
}
