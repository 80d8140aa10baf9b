// Package paper writes the material for a paper about a study: a document that LaTeX compiles, with its tables,
// figures, captions, set-up and references, and the same tables for other uses.
package paper

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/analyze/exhibits"
	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/report/folder"
	"github.com/dpsight/dpsight/schemas"
)

//go:embed tables.tex references.bib
var files embed.FS

// A Model has everything that a paper is made of.
type Model struct {
	Study     compare.Study
	Manifests []*schemas.Manifest
	Accuracy  []predict.AccuracyExperiment // experiments with both peaks and the error, the largest error first
	Views     map[string]*exhibits.View    // views of runs, by run id
	Largest   []exhibits.Largest
	Trend     *exhibits.Revisions // nil if no experiment was run at several revisions
	Config    *Config
	Names     []string // names of the runs on the command line
	Command   []string // command that writes the paper
	Notes     []string // notes on what was chosen and left out
	Warnings  []string // warnings of the JSON documents that the numbers come from
	Force     bool
	// Written is called after each file, with the number of files written so far and of all files. It may
	// be nil.
	Written func(done, of int)
}

// A builder makes the parts of one paper.
type builder struct {
	model  *Model
	config *Config
	paper  exhibits.Paper
	labels map[string]Label
	tables []*Grid
	plates []Plate
	left   []string // what the paper leaves out, and why
}

func newBuilder(m *Model, c *Config) *builder {
	b := &builder{model: m, config: c}
	b.paper = exhibits.Arrange(&m.Study, c.Order, c.Rows)
	b.labels = labels(&b.paper, c)
	return b
}

// Write writes the paper into the folder dir, and returns the written paths, the document first.
func Write(dir string, m Model) ([]string, error) {
	b := newBuilder(&m, m.Config)
	if len(b.paper.Groups) == 0 {
		return nil, schemas.WithHint(fmt.Errorf("no run is one of %s", strings.Join(m.Config.Rows, ", ")),
			"rows in "+ConfigFile+" names methods or runs")
	}
	b.makeTables()
	b.makeFigures()
	return folder.Write(dir, b.files(), folder.Options{Force: m.Force, Written: m.Written})
}

// makeTables makes the tables that the user wants and that have something to show.
func (b *builder) makeTables() {
	makers := map[string]func() *Grid{"main": b.mainTable, "components": b.componentsTable, "phases": b.phasesTable,
		"pivot": b.pivotTable, "repeats": b.repeatsTable, "accuracy": b.accuracyTable, "ablation": b.ablationTable}
	for _, name := range allTables {
		if !wants(b.config.Tables, name) {
			continue
		}
		switch g := makers[name](); {
		case g != nil:
			g.Label = b.config.Prefix + g.Name
			b.tables = append(b.tables, g)
		case slices.Contains(b.config.Tables, name) || name != "accuracy" && name != "ablation":
			b.left = append(b.left, fmt.Sprintf("table %s: %s", name, nothingFor[name]))
		}
	}
}

// has reports whether the paper has a table.
func (b *builder) has(table string) bool {
	return slices.ContainsFunc(b.tables, func(g *Grid) bool { return g.Name == table })
}

// nothingFor has, by table, the reason why it is missing.
var nothingFor = map[string]string{"components": "no peak is broken down",
	"phases": "no run has phases", "pivot": "no parameter varies while the method does not",
	"repeats":  "no experiment was repeated and timed",
	"accuracy": "no predicted run is of an experiment that was measured too",
	"ablation": "ablation in " + ConfigFile + " does not name two runs with peaks"}

// files returns all files of the paper.
func (b *builder) files() []folder.File {
	text := func(name string, content func() string) folder.File {
		return folder.File{Name: name, Write: func(w io.Writer) error {
			_, err := io.WriteString(w, content())
			return err
		}}
	}
	embedded := func(name string) folder.File {
		return folder.File{Name: name, Write: func(w io.Writer) error {
			content, err := files.ReadFile(name)
			if err == nil {
				_, err = w.Write(content)
			}
			return err
		}}
	}
	out := []folder.File{text("main.tex", b.document), text("style.tex", style), embedded("references.bib"),
		text("setup.tex", b.setup), text("captions.tex", b.captions), text("README.md", b.readme)}
	for _, g := range b.tables {
		out = append(out, folder.File{Name: "tables/" + g.Name + ".tex", Write: g.writeTeX},
			folder.File{Name: "tables/" + g.Name + ".md", Write: g.writeMarkdown},
			folder.File{Name: "tables/" + g.Name + ".html", Write: g.writeHTML},
			folder.File{Name: "tables/" + g.Name + ".txt", Write: g.writeText})
	}
	for i := range b.plates {
		out = append(out, b.plateFiles(&b.plates[i])...)
	}
	return out
}

// memoryUnit returns the unit of memory for the whole paper, so that all its tables share a unit.
func (b *builder) memoryUnit() unit {
	u := chosen(b.config.Units.Memory, b.values(peakOf), gib, mib)
	if u.name == mib.name && largest(b.values(peakOf)) < 10*mib.size {
		u.digits = 2
	}
	u.digits = b.digits("memory", u.digits)
	return u
}

func (b *builder) stepUnit() unit {
	steps := b.values(stepOf)
	u := chosen(b.config.Units.Time, steps, seconds, millis)
	if u.name == seconds.name && slices.Min(steps) < seconds.size { // with two digits, times and slowdowns would disagree
		u.digits++
	}
	if b.spread() > spreadOfValue {
		u.digits = max(0, u.digits-1)
	}
	u.digits = b.digits("time", u.digits)
	return u
}

func (b *builder) ratioUnit() unit {
	u := times
	if b.spread() > spreadOfRatio {
		u.digits = 1
	}
	u.digits = b.digits("ratio", u.digits)
	return u
}

// digits returns the configured number of digits for a kind of figure, or else the number otherwise.
func (b *builder) digits(kind string, otherwise int) int {
	if n, ok := b.config.Digits[kind]; ok {
		return n
	}
	return otherwise
}

// methods reports whether the paper compares methods, rather than other settings of a script.
func (b *builder) methods() bool {
	return slices.ContainsFunc(b.paper.Groups, func(g exhibits.Group) bool {
		return slices.ContainsFunc(g.Entries, func(e exhibits.Entry) bool { return e.Method() != "" })
	})
}

// baselineName returns what entries are compared with, as a word within a sentence.
func (b *builder) baselineName() string {
	for i := range b.paper.Groups {
		if e := b.paper.Groups[i].Baseline(); e != nil {
			if e.Method() == "vanilla" {
				return "non-private training"
			}
			return b.labels[e.Key].Short
		}
	}
	return "the baseline"
}

// subject returns the subject of a sentence about all entries that are compared with the baseline, or "" if dpsight has
// no word for them.
func (b *builder) subject() string {
	if b.private() && b.baselineName() == "non-private training" {
		return "Private training"
	}
	return ""
}

// sweptWords name the swept parameters: "B and T".
func (b *builder) sweptWords() string {
	words := make([]string, len(b.paper.Swept))
	for i, p := range b.paper.Swept {
		words[i] = parameterWords(p)
	}
	return joinWords(words)
}

// parameterWords name a parameter.
func parameterWords(name string) string {
	known := map[string]string{exhibits.GPU: "GPU", "batch_size": "batch size B", "seq_len": "sequence length T",
		"physical_batch_size": "physical batch size b"}
	if w := known[name]; w != "" {
		return w
	}
	return strings.ReplaceAll(name, "_", " ")
}

// common returns the settings that all runs share, in a few words for a caption.
func (b *builder) common() string {
	fact := func(what string) string {
		for _, f := range b.model.Study.Configuration.Common {
			if f.What == what {
				return f.Value
			}
		}
		return ""
	}
	var parts []string
	if model := fact("model"); model != "" {
		parts = append(parts, strings.ReplaceAll(model, "_", " "))
	}
	batch, length := fact("batch_size"), fact("seq_len")
	switch {
	case batch == "1" && length != "":
		parts = append(parts, "1\u202f×\u202f"+grouped(length)+" tokens")
	case batch != "" && length != "":
		parts = append(parts, fmt.Sprintf("%s\u202f×\u202f%s tokens", grouped(batch), grouped(length)))
	case batch != "":
		parts = append(parts, "batch "+grouped(batch))
	case length != "":
		parts = append(parts, grouped(length)+" tokens")
	}
	if precision := fact("precision"); precision != "" {
		parts = append(parts, precision)
	}
	if gpu := fact("GPU"); gpu != "" {
		parts = append(parts, strings.TrimPrefix(gpu, "NVIDIA "))
	}
	return strings.Join(parts, ", ")
}
