package report_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/figure"
	"github.com/dpsight/dpsight/schemas"
)

// gallery returns studies whose pictures are hard to draw.
func gallery() map[string]compare.Study {
	g := map[string]compare.Study{}
	g["headline"] = study(0, headline()...)
	g["one"] = study(-1, headline()[2])
	g["one-baseline"] = study(0, headline()[0])
	var many []madeUp
	for i := range 12 {
		m := headline()[i%3]
		m.id = fmt.Sprintf("run-%02d", i)
		m.name = fmt.Sprintf("%s-b%d", m.name, 1<<(i/3))
		for k := range m.blocks {
			m.blocks[k].mib *= 1 + float64(i)/12
		}
		if i%4 == 3 {
			m.source = schemas.Predicted
		}
		many = append(many, m)
	}
	g["twelve"] = study(0, many...)

	long := headline()
	long[0].name = "a-very-long-name-of-sixty-characters-that-somebody-did-choose"
	long[1].name = "按样本梯度裁剪 实验 (Opacus)"
	long[2].name = "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW"
	long[1].source = schemas.Predicted
	long[2].source = schemas.Imported
	g["names"] = study(0, long...)

	tiny := madeUp{id: "tiny", name: "tiny <b> & \"x\"", status: schemas.StatusOK, source: schemas.Measured, steps: 3,
		stepNS: 1e6,
		blocks: []block{{1.0 / mib, one(schemas.Parameters), false}}}
	huge := tiny
	huge.id, huge.name, huge.blocks = "huge", "huge", []block{{100 * 1024, one(schemas.Parameters), false}}
	g["tiny-huge"] = study(0, tiny, huge)
	g["huge-tiny"] = study(1, tiny, huge)

	var failed []madeUp
	for i, status := range []string{schemas.StatusFailed, schemas.StatusOOM, schemas.StatusTimeout} {
		m := headline()[i]
		m.status, m.blocks, m.reason = status, nil, "the command ended with exit code 1 and a very long reason that "+
			"nobody wants to read to its end in a figure"
		failed = append(failed, m)
	}
	g["failed"] = study(-1, failed...)

	var oom []madeUp
	for i, m := range headline() {
		m.status, m.blocks, m.reason = schemas.StatusOOM, nil, fmt.Sprintf("out of memory: %d GiB requested", 20<<i)
		oom = append(oom, m)
	}
	g["all-oom"] = study(0, oom...)

	mixed := headline()
	mixed[1].bare, mixed[1].name = true, "dpsgd"
	mixed[2].status, mixed[2].reason = schemas.StatusOOM, "out of memory: 20 GiB requested"
	mixed = append(mixed, failed[0])
	mixed[3].id = "failed-one"
	g["mixed"] = study(0, mixed...)
	adversaries(g)
	shrunk := headline()
	shrunk[0], shrunk[2] = shrunk[2], shrunk[0]
	g["shrunk"] = study(0, shrunk...)
	g["none"] = study(-1)
	return g
}

// adversaries adds studies that figures are likely to draw wrongly.
func adversaries(g map[string]compare.Study) {
	var forty, same, repeats, matrix []madeUp
	for i := range 40 {
		m := headline()[i%3]
		m.id, m.name = fmt.Sprintf("forty-%02d", i), fmt.Sprintf("experiment-%02d-with-a-name-of-sixty-characters-%s",
			i, strings.Repeat("x", 14))
		m.stepNS += int64(i) * 1e6
		m.blocks = append([]block{{float64(i * 10), one(schemas.Buffers), false}}, m.blocks...)
		forty = append(forty, m)
		m.id, m.name, m.stepNS, m.blocks = fmt.Sprintf("same-%02d", i), fmt.Sprintf("同一 %d", i), 1e6,
			headline()[0].blocks
		same = append(same, m)
	}
	for i := range 15 { // five repeats of three experiments; one experiment varies
		m := headline()[i%3]
		m.id, m.suiteKey = fmt.Sprintf("repeat-%02d", i), fmt.Sprintf("key-%d", i%3)
		m.stepNS += int64(i*i) * 5e6
		if i%3 == 2 {
			m.blocks = append([]block{{float64(100 * i), one(schemas.Buffers), false}}, m.blocks...)
		}
		if i == 13 {
			m.status, m.reason = schemas.StatusOOM, "out of memory"
		}
		repeats = append(repeats, m)
	}
	for i := range 6 { // two batch sizes, with a baseline each
		m := headline()[i%3]
		m.id, m.name = fmt.Sprintf("matrix-%d", i), fmt.Sprintf("%s-b%d", m.name, 1+7*(i/3))
		m.params = map[string]any{"method": m.params["method"], "batch_size": float64(1 + 7*(i/3))}
		m.stepNS *= int64(1 + i/3)
		matrix = append(matrix, m)
	}
	single := madeUp{id: "single", name: "one-event", status: schemas.StatusOK, source: schemas.Imported,
		noPhases: true, blocks: []block{{512, nil, false}}}
	bare := madeUp{id: "no-phases", name: "no-phases", status: schemas.StatusOK, source: schemas.Imported,
		noPhases: true, steps: 2, stepNS: 1, blocks: headline()[1].blocks}
	predicted := headline()
	for i := range predicted {
		predicted[i].source = schemas.Predicted
	}
	g["predicted"] = study(0, predicted...)
	g["forty"] = study(0, forty...)
	g["same"] = study(0, same...)
	g["repeats"] = study(0, repeats...)
	g["matrix"] = compare.NewMatchedStudy(summaries(matrix...), nil, "")
	g["no-phases"] = study(-1, single, bare)
	g["one-event"] = study(-1, single)
}

// TestGallery writes all pictures. If DPSIGHT_GALLERY names a folder, the test keeps the pictures there, so that you
// can look at them.
func TestGallery(t *testing.T) {
	keep := os.Getenv("DPSIGHT_GALLERY")
	for name, s := range gallery() {
		if len(s.Cells) > 20 && keep == "" { // rasterising 40 panels takes seconds
			continue
		}
		dir := t.TempDir()
		if keep != "" {
			dir = filepath.Join(keep, name)
		}
		files, err := report.Write(dir, report.Model{Title: name, Study: s})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, f := range files {
			if st, err := os.Stat(f); err != nil || st.Size() == 0 {
				t.Errorf("%s: %s is missing or empty: %v", name, f, err)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*"+schemas.PartialSuffix)); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}

// In every picture, no text leaves the picture, overlaps another text, or lies on a curve or a point.
func TestGalleryIsLegible(t *testing.T) {
	legible := func(name string, figures ...figure.Figure) {
		for _, f := range figures {
			bad, err := f.Misplaced()
			if err != nil {
				t.Errorf("%s, %s: %v", name, f.Name, err)
			}
			if !strings.HasPrefix(f.Name, "timeline-") { // the lines of a timeline may cross its texts
				c, err := f.Canvas()
				if err != nil {
					t.Fatal(err)
				}
				bad = append(bad, c.Covered()...)
			}
			for _, b := range bad {
				t.Errorf("%s, %s: %s", name, f.Name, b)
			}
		}
	}
	for name, s := range gallery() {
		m := report.Model{Study: s}
		all := m
		all.Steps = report.StepsAll
		legible(name, append(m.Figures(), all.Figures()...)...)
	}
	for name, m := range ladders() {
		legible(name, *drawnLadder(m))
	}
	for name, doc := range explanations(t) {
		legible(name, report.ExplainFigure(doc))
	}
	for name, doc := range trends(t) {
		legible("trend-"+name, report.TrendFigure(doc))
	}
	for name, doc := range searches() {
		legible("fit-"+name, report.FitFigure(doc))
	}
}
