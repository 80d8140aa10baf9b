package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/ingest/ingesttest"
	"github.com/dpsight/dpsight/schemas"
)

var update = flag.Bool("update", false, "rewrite what the documentation shows")

// pages are the documents with tables and pictures that dpsight makes.
var pages = []string{"docs/overhead.md", "docs/cost.md", "docs/gallery.md", "docs/claims.md", "docs/accuracy.md",
	"docs/categories.md"}

var (
	// block matches a dpsight command in a page's comment, and the text below the comment, which shows the command and
	// its output.
	block = regexp.MustCompile(`(?s)<!-- dpsight (.*?) -->\n(.*?)<!-- end -->`)
	// drawing matches a dpsight command in a page's comment that draws into the folder of its -o, the name of a figure
	// in that folder, and the link below the comment that shows the figure.
	drawing = regexp.MustCompile(
		`<!-- figure (\S+) of: dpsight ((?:report|explain) .*?) -->\n!\[[^\]]*\]\((\S+?)\)`)
)

// The tables and pictures of the documentation equal what the commands in the comments above them print and draw.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("it draws every picture on one goroutine: slow under the race detector, which finds nothing there")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(withTables(t, root))
	drawings := map[string]string{} // the folder that each command drew into
	for _, name := range pages {
		if name != pages[0] && !testkit.WithRest() && !*update {
			continue
		}
		page := filepath.Join(root, name)
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		fresh := block.ReplaceAllFunc(text, func(b []byte) []byte {
			command := string(block.FindSubmatch(b)[1])
			shown := "`dpsight " + strings.TrimSuffix(command, " --format markdown") + "`\n\n"
			return []byte("<!-- dpsight " + command + " -->\n" + shown + printed(t, strings.Fields(command)) +
				"\n<!-- end -->")
		})
		figures := drawing.FindAllSubmatch(text, -1)
		if len(block.FindAll(text, -1)) == 0 {
			t.Errorf("%s shows no command's output", name)
		}
		if *update {
			if err := os.WriteFile(page, fresh, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if !bytes.Equal(fresh, text) {
			t.Errorf("%s shows other output than its commands print: go test ./cmd/dpsight -run TestReadme -update",
				name)
		}
		for _, f := range figures {
			figure, command, link := string(f[1]), string(f[2]), filepath.Join(filepath.Dir(page), string(f[3]))
			if drawings[command] == "" {
				drawings[command] = t.TempDir()
				printed(t, append(strings.Fields(command), "-o", drawings[command]))
			}
			drawn, err := os.ReadFile(filepath.Join(drawings[command], figure))
			if err != nil {
				t.Fatal(err)
			}
			showsPicture(t, link, drawn, "TestReadme")
		}
	}
}

// showsPicture compares a page's picture with the drawn one, pixel by pixel: the file may be compressed better than
// dpsight's.
func showsPicture(t *testing.T, path string, drawn []byte, test string) {
	t.Helper()
	want, err := png.Decode(bytes.NewReader(drawn))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err == nil {
		var shown image.Image
		if shown, err = png.Decode(bytes.NewReader(file)); err == nil && samePixels(shown, want) {
			return
		}
	}
	if !*update {
		t.Errorf("%s is not what its command draws: go test ./cmd/dpsight -run %s -update (%v)", path, test, err)
	} else if err := os.WriteFile(path, drawn, 0o644); err != nil {
		t.Fatal(err)
	}
}

func samePixels(a, b image.Image) bool {
	if a.Bounds() != b.Bounds() {
		return false
	}
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y++ {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x++ {
			r, g, b1, alpha := a.At(x, y).RGBA()
			if r2, g2, b2, alpha2 := b.At(x, y).RGBA(); r != r2 || g != g2 || b1 != b2 || alpha != alpha2 {
				return false
			}
		}
	}
	return true
}

// README and docs/accuracy.md state how exact predictions are. The figures must equal the tables, which cover all
// files of predictions in examples/accuracy. Each script counts once. Predictions repeated after a fix are in
// separate files whose names end with -after-fixes, and are reported separately.
func TestReadmeSaysHowExactPredictionsAre(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads the tables of nearly every recording: slow under the race detector, which finds nothing there")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "accuracy.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(withTables(t, root))
	files, err := filepath.Glob(filepath.Join("examples", "accuracy", "predicted*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no predictions, %v", err)
	}
	unread := map[string]bool{}
	for _, file := range files {
		unread[filepath.ToSlash(file)] = true
	}
	var first, second, builtIn struct{ all, exact, within, missed, refused int }
	worst, worstIn := 0.0, ""
	ofScripts, closeOnes := 0, 0
	misses, mended := map[string]bool{}, []string{} // held-out scripts, missed or exact after a fix
	rows := []struct{ of, begins string }{{" examples/plain", "[that know nothing of " +
		"dpsight](#scripts-that-know-nothing-of-dpsight)"},
		{"predicted-development.json", "[the development scripts](#the-development-scripts), predicted again"},
		{"predicted-held-out.json", "[the held-out scripts](#the-held-out-scripts), as predicted then"},
		{"predicted-held-out-fixed-kinds.json",
			"[held-out scripts of fixed kinds](#held-out-scripts-of-fixed-kinds), as predicted then"},
		{"predicted-held-out-missed-kinds.json",
			"[held-out scripts of missed kinds](#held-out-scripts-of-missed-kinds), as predicted then"},
		{"predicted-held-out-worst-kind.json",
			"[the held-out script of the worst kind](#the-held-out-script-of-the-worst-kind), as predicted then"}}
	for _, b := range block.FindAllSubmatch(page, -1) {
		args := strings.Fields(strings.TrimSuffix(string(b[1]), " --format markdown"))
		if slices.Contains(args, "--by-doubt") {
			continue
		}
		of, anew := &builtIn, false
		for _, arg := range args {
			delete(unread, arg)
			switch name, _ := strings.CutSuffix(filepath.Base(arg), ".json"); {
			case strings.HasPrefix(name, "predicted-") && strings.HasSuffix(name, "-after-fixes"):
				anew = true
			case name == "predicted-development", arg == "examples/plain":
				of = &first
			case strings.HasPrefix(name, "predicted-held-out"):
				of = &second
			}
		}
		var doc predict.AccuracyDocument
		if err := json.Unmarshal([]byte(printed(t, append(args, "--format", "json"))), &doc); err != nil {
			t.Fatal(err)
		}
		if anew { // its table stands below the one with the first predictions of these scripts
			for _, x := range doc.Experiments {
				if misses[x.Name] && *x.Allocated.Error == 0 {
					mended = append(mended, x.Name)
				}
			}
			continue
		}
		before := *of
		for _, x := range doc.Experiments {
			of.all++
			if of == &builtIn && x.Params["method"] == nil {
				ofScripts++ // the suite lora runs one script
			}
			if of != &builtIn && x.Confidence == schemas.Close {
				closeOnes++
			}
			if of == &second && *x.Allocated.Error != 0 {
				misses[x.Name] = true
			}
			switch e := *x.Allocated.Error; {
			case e == 0:
				of.exact++
			case math.Abs(e) < 0.02:
				of.within++
			case e < 0:
				of.missed++
				worst, worstIn = -e, x.Name
			default:
				t.Fatalf("%s was predicted too high by %g", x.Name, e)
			}
		}
		of.refused += len(doc.Unended)
		for _, r := range rows {
			if of == &builtIn || !strings.Contains(strings.Join(args, " "), r.of) {
				continue
			}
			orDash := func(n int) string {
				if n == 0 {
					return "–"
				}
				return fmt.Sprint(n)
			}
			missed := orDash(of.missed - before.missed)
			if missed != "–" {
				missed += fmt.Sprintf(", %.0f %% too low", 100*worst)
			}
			row := fmt.Sprintf("| %s | %d | %d | %s | %s | %s |\n", r.begins, len(doc.Experiments)+len(doc.Unended),
				of.exact-before.exact, orDash(of.within-before.within), missed, orDash(len(doc.Unended)))
			if !strings.Contains(string(page), row) {
				t.Errorf("docs/accuracy.md does not begin with what its tables come to: %q", row)
			}
		}
	}
	first.all, second.all = first.all+first.refused, second.all+second.refused
	if builtIn.exact != builtIn.all || len(unread) > 0 || first.missed+second.missed != 1 ||
		!slices.Contains(mended, worstIn) {
		t.Fatalf("the sentences would not hold: built in %+v, the development scripts %+v, the others %+v, mended %q; in no "+
			"table %v", builtIn, first, second, mended, unread)
	}
	want := fmt.Sprintf("Predicted peaks match an H200 to the byte for all %d recorded experiments of suites (%d of "+
		"them built in) and for %d of %d other scripts. Of those %[4]d, %d more are within 2 %%, one was %.0f %% too low, "+
		"and %d are refused. %d of the %[4]d were written after the phantom GPU; %[9]d of these were exact at the first "+
		"attempt, and fixes made %d of the %d inexact ones exact, the worst among them", builtIn.all,
		builtIn.all-ofScripts, first.exact+second.exact, first.all+second.all, first.within+second.within, 100*worst,
		first.refused+second.refused, second.all, second.exact, len(mended), len(misses))
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("docs/accuracy.md does not say what its tables do: %q", want)
	}
	short, _, _ := strings.Cut(want, ". ")
	if !strings.Contains(strings.Join(strings.Fields(string(readme)), " "), short) {
		t.Errorf("README.md does not say what docs/accuracy.md's tables do: %q", short)
	}
	if said := fmt.Sprintf("the %d scripts of this page whose predictions are `close`",
		closeOnes); !strings.Contains(strings.Join(strings.Fields(string(page)), " "), said) {
		t.Errorf("docs/accuracy.md does not say of its errors by kind of doubt: %q", said)
	}
}

// byDoubt matches the command in docs/accuracy.md that writes the known errors of predictions, by doubt.
var byDoubt = regexp.MustCompile(
	`(?m)^dpsight (accuracy --by-doubt (?:.*\\\n)*.*) > analyze/confidence/known\.json$`)

// The known errors that dpsight shows beside predictions must equal what the command in docs/accuracy.md computes from
// the recordings.
func TestKnownErrorsAreTheRecordings(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "accuracy.md"))
	if err != nil {
		t.Fatal(err)
	}
	command := byDoubt.FindSubmatch(text)
	if command == nil {
		t.Fatal("docs/accuracy.md does not say how analyze/confidence/known.json is written")
	}
	t.Chdir(withTables(t, root))
	args := strings.Fields(strings.ReplaceAll(string(command[1]), "\\\n", " "))
	path, fresh := filepath.Join(root, "analyze", "confidence", "known.json"), printed(t, args)
	if *update {
		if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if kept, err := os.ReadFile(path); err != nil || string(kept) != fresh {
		t.Errorf("analyze/confidence/known.json is not what its command prints: go test ./cmd/dpsight -run "+
			"TestKnownErrorsAreTheRecordings -update (%v)", err)
	}
}

// docs/categories.md states, for every recording with allocator events, how much of its peak is known. For a new
// store, the page must show this too.
func TestEveryRecordingIsShownAsKnown(t *testing.T) {
	text, err := os.ReadFile("../../docs/categories.md")
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := filepath.Glob("../../examples/*/*/" + schemas.ManifestFile)
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no examples, %v", err)
	}
	for _, path := range manifests {
		m, err := schemas.ReadManifest(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Base(filepath.Dir(filepath.Dir(path)))
		shown := "<!-- dpsight breakdown examples/" + folder + " --known --format markdown -->\n"
		if folder != "collector-alone" && !m.Bare && !strings.Contains(string(text), shown) {
			t.Errorf("docs/categories.md does not say how %s is known: write a line %q and <!-- end --> there, then "+
				"go test ./cmd/dpsight -run TestReadme -update", m.RunID, strings.TrimSpace(shown))
		}
	}
}

// withTables returns a folder that has the repository's examples, including the tables that the repository leaves
// out.
func withTables(t *testing.T, root string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "examples"), 0o755); err != nil {
		t.Fatal(err)
	}
	stores, err := filepath.Glob(filepath.Join(root, "examples", "*", "*", schemas.ManifestFile))
	if err != nil || len(stores) == 0 {
		t.Fatalf("no examples, %v", err)
	}
	for i, manifest := range stores {
		from := filepath.Dir(filepath.Dir(manifest))
		if i > 0 && from == filepath.Dir(filepath.Dir(stores[i-1])) {
			continue
		}
		if err := os.Symlink(ingesttest.Store(t, from), filepath.Join(folder, "examples", filepath.Base(from))); err !=
			nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(root, "examples", "accuracy"), filepath.Join(folder, "examples",
		"accuracy")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// printed returns a command's stdout. The command must succeed.
func printed(t *testing.T, args []string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(args, &out, &errs); code != exitDone {
		t.Fatalf("dpsight %s: exit %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// As docs/usage.md says, the Python module dpsight does nothing in a script that is not recorded: calls, blocks and
// decorated functions behave as without it.
func TestModuleDoesNothingUnrecorded(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join("..", "..", "collect", "agent", "python"))
	if err != nil {
		t.Fatal(err)
	}
	python := os.Getenv("DPSIGHT_TEST_PYTHON") // make test sets it
	if python == "" {
		if python, err = exec.LookPath("python3"); err != nil {
			t.Skip("SKIPPED: there is no python3")
		}
	}
	script := fmt.Sprintf("import sys\nsys.path.insert(0, %q)\nimport dpsight\n", folder) + `
import gc, weakref

class Tensor: pass

@dpsight.phase("augment")
def augment(x):
    return 2 * x

x = Tensor()
kept = weakref.ref(x)
dpsight.tag(x, "activations", "cache")
dpsight.step(samples=32, tokens=4096)
del x
gc.collect()
assert kept() is None
try:
    with dpsight.phase("augment"):
        raise KeyError("the script's own")
except KeyError:
    print(augment(21))
`
	out, err := exec.Command(python, "-I", "-c", script).CombinedOutput()
	if string(out) != "42\n" {
		t.Errorf("it prints %q, %v", out, err)
	}
}

// Where a documentation page shows a dpsight ingest command with a path below examples/, each folder that the path
// matches is a run or a store with runs.
func TestPagesIngest(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("dpsight ingest (?:--again )?(examples/[^`\\s]+)").FindAllStringSubmatch(
			string(text), -1) {
			if m[1] == "examples/NAME" {
				continue
			}
			found++
			paths, err := filepath.Glob(filepath.Join("../..", m[1]))
			if err != nil || len(paths) == 0 {
				t.Errorf("%s: %s: there is none, %v", file, m[0], err)
			}
			for _, path := range paths {
				if all, _ := filepath.Glob(filepath.Join(path, "*", schemas.ManifestFile)); len(all) > 0 {
					continue
				}
				if _, err := schemas.ReadManifest(path); err != nil {
					t.Errorf("%s: %s: %s is no run and no store: %v", file, m[0], path, err)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no page ingests anything")
	}
}
