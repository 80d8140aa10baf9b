package main

import (
	"archive/tar"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/dpsight/dpsight/analyze/trend"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

var recordHistory = flag.String("record-history", "", "keep what TestTrendOfARepositoryRecorded records in this file")

// TestTrendOfARepositoryRecorded makes the trend of a repository from runs that it records: 40 predictions, which take
// minutes.
func TestTrendOfARepositoryRecorded(t *testing.T) {
	if os.Getenv("DPSIGHT_TEST_LONG") == "" && *recordHistory == "" {
		t.Skip("SKIPPED: DPSIGHT_TEST_LONG is unset")
	}
	python := python(t)
	repository, dir := t.TempDir(), t.TempDir()
	revisions := ganHistory(t, repository)
	const stride = 7 // 7 and 40 have no common factor, so all revisions are run, in another order
	for i := range revisions {
		revision := revisions[i*stride%len(revisions)]
		checkout := exec.Command("git", "checkout", "--quiet", revision)
		checkout.Dir = repository
		if out, err := checkout.CombinedOutput(); err != nil {
			t.Fatalf("git checkout %s: %v\n%s", revision, err, out)
		}
		r := dpsight(t, repository, append([]string{"predict", "--quiet", "--store", dir, "--steps", "all", "--", python},
			ganArguments...)...)
		if r.code != 0 {
			t.Fatalf("%s: exit %d\n%s", revision, r.code, r.stderr)
		}
	}
	if *recordHistory != "" {
		pack(t, dir, revisions, *recordHistory)
	}
	r := dpsight(t, t.TempDir(), "compare", dir, "--over", "revision", "--format", "json")
	if r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.stderr)
	}
	var doc trend.Document
	if err := json.Unmarshal([]byte(r.stdout), &doc); err != nil {
		t.Fatal(err)
	}
	checkGanTrend(t, &doc, revisions)
}

// pack writes what TestTrendOfARepository reads into an archive: manifests and summaries, and the tables of the runs
// before and after each commit that changes memory.
func pack(t *testing.T, dir string, revisions []string, archive string) {
	t.Helper()
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	add := func(name string, text []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	var whole []string // the revisions whose runs keep all their tables
	for i, c := range ganCommits {
		if c.moves {
			whole = append(whole, revisions[i], revisions[i+1])
		}
	}
	runs, _, err := store.Open(dir).Runs()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range store.Asked(runs) {
		anonymous(t, r)
		for _, file := range must1(os.ReadDir(r.Dir)) {
			name := file.Name()
			kept := name == schemas.ManifestFile || name == schemas.SummaryFile
			if kept || slices.Contains(whole, r.Manifest.Git.Revision) && file.Type().IsRegular() &&
				filepath.Ext(name) != ".log" && !slices.Contains(elsewhere, name) {
				add(r.ID+"/"+name, must1(os.ReadFile(filepath.Join(r.Dir, name))))
			}
		}
	}
	add(revisionList, []byte(strings.Join(revisions, "\n")+"\n"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

// anonymous removes from a run's documents the facts about the machine on which it was made.
func anonymous(t *testing.T, r store.Run) {
	t.Helper()
	python := r.Manifest.Command[0]
	for name, write := range map[string]func(text []byte) error{
		schemas.ManifestFile: func(text []byte) error {
			m := new(schemas.Manifest)
			if err := json.Unmarshal(text, m); err != nil {
				return err
			}
			m.Host.Name, m.Interpreter = "gpu-host", nil
			return schemas.WriteManifest(r.Dir, m)
		},
		schemas.IngestReportFile: func(text []byte) error {
			report := new(schemas.IngestReport)
			if err := json.Unmarshal(text, report); err != nil {
				return err
			}
			return schemas.WriteFile(filepath.Join(r.Dir, schemas.IngestReportFile), report.Encode)
		},
		schemas.SummaryFile: func(text []byte) error {
			s := new(schemas.Summary)
			if err := json.Unmarshal(text, s); err != nil {
				return err
			}
			return schemas.WriteSummary(r.Dir, s)
		},
	} {
		text := strings.ReplaceAll(string(must1(os.ReadFile(filepath.Join(r.Dir, name)))), python, "python")
		text = temporary.ReplaceAllString(text, "")
		if err := write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// elsewhere lists tables with facts about the machine on which a run was made. No trend reads them.
var elsewhere = []string{schemas.Processes.File(), schemas.HostSamples.File()}

// temporary matches the folder of a test.
var temporary = regexp.MustCompile(`/tmp/Test[A-Za-z]+[0-9]+/[0-9]+/`)

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
