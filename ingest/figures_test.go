package ingest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
)

// A value that is 0 in a file is 0 in the tables, and an unknown value is null.
func TestFiguresOfZero(t *testing.T) {
	begin := func(p *schemas.Phase) *int64 { return p.AllocatedBegin }
	gpu := func(p *schemas.Phase) *int64 { return p.GPUNS }
	for _, test := range []struct {
		file, phase string
		of          func(*schemas.Phase) *int64
		known       bool
	}{
		{"DPSGDTrainer_bs4_seq512.log", schemas.PhaseSetupModel, begin, true},
		{"results.json", schemas.PhaseSetupModel, begin, true},
		{"stages.json", schemas.PhaseSetupModel, begin, true},
		{"memory_profile_results.json", schemas.PhaseSetupModel, begin, true},
		{"vanilla_result.json", "warmup", begin, false},
		{"gpu.pt.trace.json", schemas.PhaseBetween, gpu, true},
		{"stages.json", schemas.PhaseForward, gpu, false},
	} {
		doc := ingestAll(t, t.TempDir(), Options{}, filepath.Join("figures", "testdata", test.file))
		if len(doc.Dirs) == 0 {
			t.Fatalf("%s: %+v", test.file, doc)
		}
		phases := rows(t, schemas.Phases, doc.Dirs[0])
		at := slices.IndexFunc(phases, func(p schemas.Phase) bool { return p.Phase == test.phase })
		if at < 0 {
			t.Fatalf("%s has no phase %s", test.file, test.phase)
		}
		if v := test.of(&phases[at]); (v != nil) != test.known || v != nil && *v != 0 {
			t.Errorf("%s, %s: %+v", test.file, test.phase, phases[at])
		}
	}
}

// A summary in an archive or in a folder is left out if the files that it summarises are there too.
func TestSummariesAreLeftOut(t *testing.T) {
	from := func(name string) string { return filepath.Join("figures", "testdata", name) }
	const log, summary, table = "DPSGDTrainer_bs4_seq512.log", "results.json", "memory_profile_summary.csv"
	for _, test := range []struct {
		archive string
		names   []string
		runs    int
	}{
		{"all.zip", []string{summary, log}, 1},
		{"mixed.zip", []string{summary, log, table}, 3},
		{"summary.zip", []string{summary, table}, 4},
		{"all.tar.gz", []string{"memory_profile_results.json", table}, 2},
	} {
		path := filepath.Join(t.TempDir(), test.archive)
		var files []string
		for _, name := range test.names {
			files = append(files, from(name))
		}
		archiveOf(t, path, test.names, files)
		folder := t.TempDir()
		for i, name := range test.names {
			if err := copyFile(files[i], filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{path, folder} {
			doc := ingestAll(t, t.TempDir(), Options{}, path)
			if len(doc.Dirs) != test.runs || len(doc.Refused()) > 0 {
				t.Errorf("%s, %s: %+v", test.archive, path, doc)
			}
		}
	}
}

// If dpsight cannot import a tool's file as a baseline, the error says why. Each case is the file of another tool.
func TestBaselineSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	result, err := os.ReadFile("figures/testdata/vanilla_result.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ text, want string }{
		"cut_result.json": {string(result[:900]), "it begins like a component profiler's result"},
		"cut.pickle":      {"\x80\x04no snapshot", "bad pickle"},
		"other.json":      {`{"a": 1}`, ""}, // no tool that dpsight knows wrote this
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		as, done, err := Baseline(path, "test")
		if test.want == "" && (err != nil || as != path) ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %q, %v", name, as, err)
		}
		done()
	}
	packed := filepath.Join(dir, "cut.zip")
	archiveOf(t, packed, []string{"memory.pickle", "notes.txt"},
		[]string{filepath.Join(dir, "cut.pickle"), filepath.Join(dir, "other.json")})
	if as, _, err := Baseline(packed, "test"); err == nil || !strings.Contains(err.Error(), "bad pickle") {
		t.Errorf("a bad snapshot in an archive: %q, %v", as, err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "nowhere"))
	if _, _, err := Baseline("figures/testdata/vanilla_result.json", "test"); err == nil ||
		!strings.Contains(err.Error(), "temporary files") {
		t.Errorf("without a place to import to: %v", err)
	}
}
