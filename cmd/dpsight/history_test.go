package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/dpsight/dpsight/analyze"
	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/trend"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// ganRecording is an archive of one predicted run for each revision that ganHistory makes. The archive has the
// manifests and summaries of all revisions, and the tables of the six runs around the commits that change memory. The
// archive also has the list of revisions, since the runs were made in another order than the commits.
// TestTrendOfARepositoryRecorded writes the archive.
const ganRecording = "testdata/history/gan.tar.zst"

// The trend names the three commits that change what the script allocates, each with the change of the peak, and no
// other commit. The runs were made in another order than the commits.
func TestTrendOfARepository(t *testing.T) {
	dir := t.TempDir()
	unpack(t, ganRecording, dir)
	list, err := os.ReadFile(filepath.Join(dir, revisionList))
	if err != nil {
		t.Fatal(err)
	}
	runs, _, err := store.Open(dir).Runs()
	if err != nil {
		t.Fatal(err)
	}
	var reader analyze.KeptReader
	var summaries []analyze.Summary
	at := map[string]store.Run{}
	for _, r := range runs {
		at[r.ID] = r
		var kept schemas.Summary
		if err := schemas.ReadDocument(filepath.Join(r.Dir, schemas.SummaryFile), schemas.SummarySchema, &kept); err != nil {
			t.Fatal(err)
		}
		packed, err := analyze.Pack(kept.Row, kept.Compared)
		if err != nil {
			t.Fatal(err)
		}
		s, err := reader.Summary(kept.Origin, packed.Compared)
		if err != nil {
			t.Fatal(err)
		}
		summaries = append(summaries, s)
	}
	peak := compare.Metric{Name: compare.MetricPeak}
	doc, err := trend.Of(summaries, trend.Revision, peak)
	if err != nil {
		t.Fatal(err)
	}
	for i := range doc.Experiments {
		for k := range doc.Experiments[i].Steps {
			step := &doc.Experiments[i].Steps[k]
			var in [2]*schemas.Tables
			for side, run := range step.Runs {
				if in[side], err = store.Load(at[run.RunID], trend.ModuleTables); err != nil {
					t.Fatal(err)
				}
			}
			step.Attribute(step.Attributed(peak), in[0], in[1])
		}
	}
	checkGanTrend(t, &doc, strings.Fields(string(list)))
}

const revisionList = "revisions.txt"

// unpack unpacks an archive.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// checkGanTrend checks a trend over all revisions of ganHistory's repository.
func checkGanTrend(t *testing.T, doc *trend.Document, revisions []string) {
	t.Helper()
	if len(doc.Experiments) != 1 || len(doc.Experiments[0].Points) != len(revisions) || len(revisions) !=
		len(ganCommits)+1 {
		t.Fatalf("%d revisions are %d experiments", len(revisions), len(doc.Experiments))
	}
	x := doc.Experiments[0]
	for i, p := range x.Points {
		if p.Revision == nil || !strings.HasPrefix(revisions[i], *p.Revision) || p.Value == nil {
			t.Fatalf("point %d is %+v, not of %s", i, p, revisions[i])
		}
	}
	var moved, marked []string
	for i, c := range ganCommits {
		if c.moves {
			moved = append(moved, c.message)
		}
		if slices.ContainsFunc(x.Steps, func(s trend.Step) bool { return s.To == i+1 }) {
			marked = append(marked, c.message)
		}
	}
	if !slices.Equal(moved, marked) || len(x.Steps) != 3 {
		t.Fatalf("the commits that change memory are %q, the steps %q of %d", moved, marked, len(x.Steps))
	}
	for i, want := range []struct {
		category, module string
		least, most      float64 // percent of the peak
		alone            bool    // whether only this category changes
	}{
		{schemas.Activations, "Generator.main", 2, 3, true},
		{schemas.Activations, "Discriminator.main.1", -12, -8, false},
		{schemas.Script, "Generator.main.14", 25, 40, false}, // tensors that five steps keep
	} {
		s := &x.Steps[i]
		percent := 100 * s.Delta / s.Before
		if len(s.Categories) == 0 || s.Categories[0].Category != want.category || want.alone && len(s.Categories) > 1 ||
			percent < want.least || percent > want.most || len(s.Modules) == 0 || s.Modules[0].Module == nil ||
			*s.Modules[0].Module != want.module {
			t.Errorf("step %d, %.1f %%: %+v %+v", i, percent, s.Categories, s.Modules)
		}
	}
	if p := x.Steps[0].Categories[0].Percent; p == nil || *p < 4.5 || *p > 5.5 {
		t.Errorf("the first step is not 5 %% of its category: %+v", x.Steps[0])
	}
}
