package report_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/explain"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/canvas"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/report/folder"
	"github.com/dpsight/dpsight/schemas"
)

// explanations returns pairs of runs whose differences are hard to draw.
func explanations(t *testing.T) map[string]explain.Explanation {
	t.Helper()
	out := map[string]explain.Explanation{}
	add := func(name string, from, to explain.Input) {
		doc, err := explain.Explain(from, to)
		if err != nil {
			t.Fatal(name, err)
		}
		out["explain-"+name] = doc
	}
	h := headline()
	made := func(m madeUp) explain.Input { return explain.NewInput(m.input()) }
	before, after := dissected("before", 9<<20, 0, 5<<20, 1<<20), dissected("after", 1<<20, 7<<20, 5<<20, 3<<20,
		100<<20, 1000, 2<<20)
	add("usual", made(h[0]), made(h[2]))
	add("modules", before, after)
	add("shrunk", after, before)
	add("same", before, before)
	predicted := h[2]
	predicted.source, predicted.name = schemas.Predicted, "按样本梯度裁剪 实验 (Opacus) "+
		"a-very-long-name-of-sixty-characters-that-somebody-did-choose"
	add("no-times", made(h[0]), made(predicted))
	bare := h[1]
	bare.bare = true
	add("bare", made(h[0]), made(bare))
	tiny := dissected("WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW", 1)
	add("huge", tiny, dissected("huge", 1<<46, 1<<45, 1))
	add("tiny", dissected("huge", 1<<46, 1<<45, 1), tiny)
	var many []int64
	for i := range int64(300) {
		many = append(many, (i*i*7919)%(1<<20)+1)
	}
	add("timed", timedRun("plain", plainParts...), timedRun("ghost", ghostParts...))
	add("timed-back", timedRun("ghost", ghostParts...), timedRun("plain", plainParts...))
	add("timed-same", timedRun("plain", plainParts...), timedRun("plain", plainParts...))
	var timed []timedPart
	for i := range 200 {
		timed = append(timed, timedPart{schemas.PhaseForward, fmt.Sprintf("part%c.inner", 'a'+i),
			float64((i+1)*(i+1)*7919%4096) / 7}, timedPart{schemas.PhaseBackward, fmt.Sprintf("part%c.inner", 'a'+i),
			float64(i+1) / 3})
	}
	add("timed-many", timedRun("few", timed[:3]...), timedRun("many", timed...))
	add("many", dissected("few", 1<<20), dissected("many", many...))
	return out
}

// In the waterfall of every pair of runs, each bar begins where the previous bar ends. The bars of a category's modules
// fill the category's bar, and the last bar is the whole difference.
func TestWaterfallsSum(t *testing.T) {
	for name, doc := range explanations(t) {
		f := report.ExplainFigure(doc)
		w := f.Picture.(*figure.Waterfall)
		memory, want := 0, 0
		for i, has := range []bool{doc.PeakDeltaBytes != nil, doc.StepDeltaMS != nil, doc.ModuleResidueMS != nil} {
			if has {
				want++
			}
			if i == 0 {
				memory = want
			}
		}
		if len(w.Panels) != want {
			t.Fatalf("%s: %d panels, want %d", name, len(w.Panels), want)
		}
		c, err := f.Canvas()
		if err != nil {
			t.Fatal(err)
		}
		shapes := c.Shapes
		next := func() (m canvas.Shape) { m, shapes = shapes[0], shapes[1:]; return m }
		for i, p := range w.Panels {
			whole := p.Steps[len(p.Steps)-1]
			var sum, part, change int64
			inside := false
			closed := func() {
				if inside && part != change {
					t.Errorf("%s: modules fill %d of %d", name, part, change)
				}
				inside = false
			}
			changes := 0
			for _, s := range p.Steps {
				if s.Kind != figure.StepStart {
					if m := next(); m.What != s.Label {
						t.Fatalf("%s: a bar of %s where %s is due", name, m.What, s.Label)
					}
				}
				switch s.Kind {
				case figure.StepChange:
					closed()
					sum, change, part = sum+s.Delta, s.Delta, 0
					changes++
				case figure.StepPart:
					inside = true
					part += s.Delta
				}
			}
			closed()
			unit := int64(1) // each bar may be off by a nanosecond, through rounding
			if i < memory {
				unit = 0
				if whole.Delta != *doc.PeakDeltaBytes {
					t.Errorf("%s: the last bar is %d, the peaks differ by %d", name, whole.Delta, *doc.PeakDeltaBytes)
				}
			}
			if broken := len(doc.Categories) > 0 || i >= memory; broken &&
				max(sum-whole.Delta, whole.Delta-sum) > unit*int64(changes+1) {
				t.Errorf("%s: bars end at %d, the whole is %d", name, sum, whole.Delta)
			}
		}
		if len(shapes) > 0 {
			t.Errorf("%s: %d bars too many", name, len(shapes))
		}
	}
}

// The names of the written files begin with the document's name. If the folder cannot be made, the result is an error.
func TestWriteExplanation(t *testing.T) {
	doc := explanations(t)["explain-modules"]
	dir := filepath.Join(t.TempDir(), "new", "folder")
	files, err := report.WriteExplanation(dir, doc, false)
	if err != nil || fmt.Sprint(files) != fmt.Sprint([]string{filepath.Join(dir, "explain_waterfall.png"),
		filepath.Join(dir, "explain_waterfall.svg")}) {
		t.Fatal(files, err)
	}
	svg, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Peak of after minus peak of before", "parte +100.00 MiB", "residue of medians"} {
		// If each run has a single sum for a phase, there is no residue of medians.
		if has := strings.Contains(string(svg), want); has == (want == "residue of medians") {
			t.Errorf("%q: %t in the picture's description", want, has)
		}
	}
	if _, err := report.WriteExplanation(dir, doc, false); err != nil { // overwrite our own files
		t.Error(err)
	}
	if err := os.WriteFile(files[1], []byte("<svg></svg>"), 0o600); err != nil {
		t.Fatal(err)
	}
	var foreign *folder.ForeignError
	if _, err := report.WriteExplanation(dir, doc, false); !errors.As(err, &foreign) {
		t.Errorf("another's picture was replaced: %v", err)
	}
	if _, err := report.WriteExplanation(dir, doc, true); err != nil {
		t.Error(err)
	}
	if _, err := report.WriteExplanation(filepath.Join(files[0], "x"), doc, false); err == nil {
		t.Error("a folder below a file was made")
	}
	if keep := os.Getenv("DPSIGHT_GALLERY"); keep != "" {
		for name, doc := range explanations(t) {
			if _, err := report.WriteExplanation(filepath.Join(keep, name), doc, false); err != nil {
				t.Fatal(err)
			}
		}
		for name, m := range ladders() {
			if _, err := report.Write(filepath.Join(keep, name), m); err != nil {
				t.Fatal(err)
			}
		}
	}
}
