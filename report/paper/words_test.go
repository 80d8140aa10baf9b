package paper_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/report/paper"
)

// The table of phases has the same rest of a step as the figure of times. The rest is the time that no printed phase
// has.
func TestRestIsWhatPhasesLeave(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "headline", nil)
	heads, rows := texRows(t, read(t, dir, "tables", "phases.tex"))
	var rest texRow
	for _, r := range rows {
		if r.label == "Rest" {
			rest = r
		}
	}
	checked := 0
	for _, line := range readCSV(t, filepath.Join(dir, "data", "time.csv")) {
		for c, head := range heads[1:] {
			if line[2] == "rest" && strings.ReplaceAll(head, `\\`, "") == `\dpsHead`+strings.ReplaceAll(line[0], " ", "") ||
				line[2] == "rest" && head == line[0] {
				holds(t, "rest of "+head, rest.cells[c], json.Number(line[3]), 1, 1)
				checked++
			}
		}
	}
	if checked < 3 {
		t.Errorf("%d of %v were looked at: %v", checked, heads, rest.cells)
	}
}

// The medians of the phases may sum to more than the median of the step. The rest of the step is then printed as a
// value below the last digit. A dash would mean that there is no rest.
func TestNoRestIsNoDash(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "seq", func(m *paper.Model) {
		restudied(m, func(i int) {
			short := *m.Study.Runs[i].StepMS
			short.Median *= 0.9
			m.Study.Runs[i].StepMS = &short
		})
	})
	if text := read(t, dir, "tables", "phases.txt"); !regexp.MustCompile(`(?m)^Rest( +<0\.0*1)+$`).MatchString(text) {
		t.Error(text)
	}
}

// A heat map has no axis, so its caption states the unit.
func TestHeatmapsHaveUnits(t *testing.T) {
	t.Parallel()
	for example, name := range map[string]string{"headline": "roles", "seq": "heatmap"} {
		dir, _ := write(t, example, nil)
		caption := captionOf(t, dir, name)
		if !strings.Contains(caption, "(GiB)") {
			t.Errorf("%s of %s: %s", name, example, caption)
		}
	}
}

// captionOf returns the LaTeX caption of a figure.
func captionOf(t *testing.T, dir, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^\\@namedef\{dps@caption@` + name + `\}.*$`).FindString(read(t, dir, "captions.tex"))
	if found == "" {
		t.Fatalf("%s has no caption", name)
	}
	return found
}

// In Markdown, a heading of settings is emphasised as a whole, even if it contains a variable, which is itself
// emphasised.
func TestMarkdownHeadings(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "seq", nil)
	text := read(t, dir, "tables", "main.md")
	if strings.Contains(text, "| **T*") || !strings.Contains(text, "| _*T*\u202f=\u202f8,192_ |") {
		t.Error(text)
	}
}

// The rate is over all timed steps, and the step time is a median. A single slow step makes the rate and the step time
// disagree, so a note of the table explains both.
func TestRateSaysOfWhatSteps(t *testing.T) {
	t.Parallel()
	dir, _ := write(t, "headline", nil)
	text := read(t, dir, "tables", "main.txt")
	heads := regexp.MustCompile(`s/step (\(.\)) .*tokens/s (\(.\))`).FindStringSubmatch(text)
	if heads == nil || heads[1] != heads[2] || !strings.Contains(text, "\n"+heads[1]+
		" Median of the timed steps; tokens/s of all of them together.") {
		t.Error(text)
	}
}

// BibTeX fails if a document cites nothing. The commands that compile a document without citations do not call BibTeX.
func TestCommandsFitTheCitations(t *testing.T) {
	t.Parallel()
	for example, want := range map[string]bool{"headline": true, "lora": false} {
		dir, _ := write(t, example, nil)
		first, _, _ := strings.Cut(read(t, dir, "main.tex"), "\n")
		if strings.Contains(first, "bibtex") != want || strings.Contains(read(t, dir, "README.md"), "bibtex") != want {
			t.Errorf("%s: %s", example, first)
		}
	}
}

// A caption, together with its sentence in bold, has at most 45 words.
func TestCaptionsAreShort(t *testing.T) {
	const most = 45
	for example, rest := range map[string]bool{"headline": false, "headline-batch": true, "trainers": true, "seq": true,
		"lora": true} {
		t.Run(example, func(t *testing.T) {
			if rest {
				testkit.Rest(t)
			}
			dir, m := write(t, example, nil)
			captions := paper.Captions(&m)
			tables, err := filepath.Glob(filepath.Join(dir, "tables", "*.txt"))
			if err != nil || len(tables) == 0 {
				t.Fatalf("no tables: %v", err)
			}
			for _, path := range tables {
				captions[filepath.Base(path)], _, _ = strings.Cut(read(t, path), "\n")
			}
			for name, caption := range captions {
				// A number and its unit are one word: a narrow space joins them.
				if n := len(strings.Split(caption, " ")); n < 2 || n > most {
					t.Errorf("%s: %d words: %s", name, n, caption)
				}
			}
		})
	}
}
