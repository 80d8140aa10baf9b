package paper

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/dpsight/dpsight/report/folder"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/near"
)

// ConfigFile is the name of the file in a paper's folder that configures the paper.
const ConfigFile = "paper.yaml"

// Config is the content of a [ConfigFile]. Methods, and runs without a method, have the names that dpsight runs lists.
type Config struct {
	Runs     []string            `yaml:"runs"`     // the runs of the paper, if the command line names none
	Baseline string              `yaml:"baseline"` // the run to compare with, if the command line names none
	Rows     []string            `yaml:"rows"`     // the methods to show; empty = all
	Order    []string            `yaml:"order"`    // the methods that come first
	Labels   map[string]string   `yaml:"labels"`   // names of methods in the main table
	Short    map[string]string   `yaml:"short"`    // names of methods in other tables and in figures
	Heads    map[string]string   `yaml:"heads"`    // a short name in two lines, separated by "|"
	Cite     map[string]string   `yaml:"cite"`     // keys of references, by method
	Tables   []string            `yaml:"tables"`   // the tables to write; empty = all
	Figures  []string            `yaml:"figures"`  // the figures to write; empty = all
	Columns  map[string][]string `yaml:"columns"`  // columns of a table, in this order
	Ablation []string            `yaml:"ablation"` // runs whose changes the ablation table compares
	Units    Units               `yaml:"units"`    // fixed units, in place of units chosen by the values
	Digits   map[string]int      `yaml:"digits"`   // digits by kind of figure: memory, time, percent, ratio, rate, energy
	Widths   Widths              `yaml:"widths"`   // the widths of the document, in cm
	Styles   []string            `yaml:"styles"`   // places that figures are drawn for
	Prefix   string              `yaml:"prefix"`   // begins names of labels and captions, for several papers in a document
	Steps    string              `yaml:"steps"`    // "peak", or "all" to draw memory over all recorded steps too
}

// The possible values of [Config.Steps].
const (
	PeakStep = "peak"
	AllSteps = "all"
)

// Units are the units that a configuration fixes.
type Units struct {
	Memory string `yaml:"memory"` // GiB or MiB
	Time   string `yaml:"time"`   // s or ms
	Energy string `yaml:"energy"` // kJ or J
}

// Widths are the widths of the document, in cm.
type Widths struct {
	Column float64 `yaml:"column"` // width of one column
	Page   float64 `yaml:"page"`   // width of the whole text
}

// The default settings, and the possible values of each setting.
var (
	defaultWidths = Widths{8.5, 17.6}
	allTables     = []string{"main", "components", "phases", "pivot", "repeats", "accuracy", "ablation"}
	allStyles     = []string{"column", "page", "slide", "column-dark", "page-dark", "slide-dark"}
	digitKinds    = []string{"memory", "time", "percent", "ratio", "rate", "energy"}
)

// ReadConfig reads the named file or, without a name, the [ConfigFile] of a folder. If the folder has no such file, or
// if a new one is about to be written, the configuration is empty.
func ReadConfig(name, dir string, anew bool) (*Config, error) {
	path := name
	if path == "" {
		path = filepath.Join(dir, ConfigFile)
	}
	c := &Config{Widths: defaultWidths}
	if anew {
		return c, nil
	}
	text, err := os.ReadFile(path)
	if name == "" && errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, schemas.WithHint(fmt.Errorf("how the paper is to look: %w", err), "name a file that can be read")
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, schemas.WithHint(fmt.Errorf("%s: %s", path, strings.ReplaceAll(err.Error(), "\n", " ")),
			"dpsight paper --init writes one that can be read")
	}
	if err := c.check(); err != nil {
		return nil, schemas.WithHint(fmt.Errorf("%s: %w", path, err), "dpsight paper --help lists what there is")
	}
	return c, nil
}

// labelWord matches what the names of LaTeX's labels can begin with in all documents.
var labelWord = regexp.MustCompile(`^[A-Za-z0-9:-]*$`)

// check refuses settings that would have no effect.
func (c *Config) check() error {
	oneOf := func(what, value string, allowed ...string) error {
		if value == "" || slices.Contains(allowed, value) {
			return nil
		}
		return fmt.Errorf("%s is not %q%s", what, value, near.Guess(value, allowed))
	}
	errs := []error{oneOf("the unit of memory", c.Units.Memory, gib.name, mib.name),
		oneOf("the unit of time", c.Units.Time, seconds.name, millis.name),
		oneOf("the unit of energy", c.Units.Energy, kilo.name, joules.name)}
	errs = append(errs, oneOf("the steps", c.Steps, PeakStep, AllSteps))
	if !labelWord.MatchString(c.Prefix) {
		errs = append(errs, fmt.Errorf("the prefix %q is not of letters, digits, \"-\" and \":\"", c.Prefix))
	}
	for _, t := range c.Tables {
		errs = append(errs, oneOf("a table", t, allTables...))
	}
	for _, f := range c.Figures {
		errs = append(errs, oneOf("a figure", f, allFigures...))
	}
	for _, style := range c.Styles {
		errs = append(errs, oneOf("a style", style, allStyles...))
	}
	for _, table := range slices.Sorted(maps.Keys(c.Columns)) {
		errs = append(errs, oneOf("a table whose columns are chosen", table, "main"))
		for _, column := range c.Columns[table] {
			errs = append(errs, oneOf("a column", column, mainColumns...))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(c.Digits)) {
		errs = append(errs, oneOf("what has digits", kind, digitKinds...))
		if n := c.Digits[kind]; n < 0 || n > 6 {
			errs = append(errs, fmt.Errorf("%s may have 0 to 6 digits, not %d", kind, n))
		}
	}
	if c.Widths.Column < 5 || c.Widths.Page < c.Widths.Column || c.Widths.Page > 40 {
		errs = append(errs, fmt.Errorf("widths are in cm, a column at least 5 and a page at least a column: %g and %g",
			c.Widths.Column, c.Widths.Page))
	}
	return errors.Join(errs...)
}

// name returns the label that the configuration gives a run, or else the other name.
func (c *Config) name(run, other string) string {
	if l := c.Labels[run]; l != "" {
		return l
	}
	return other
}

// wants reports whether the user wants a table or figure. Without names the user wants all.
func wants(asked []string, name string) bool { return len(asked) == 0 || slices.Contains(asked, name) }

// Init writes a [ConfigFile] into a folder, which it creates, and returns its path. Init overwrites an existing file
// only with force, since the user may have edited it.
func Init(dir string, m *Model) (string, error) {
	path := filepath.Join(dir, ConfigFile)
	if _, err := os.Lstat(path); err == nil && !m.Force {
		return path, &folder.ForeignError{Path: path}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return path, folder.Unwritable(err)
	}
	return path, folder.Unwritable(schemas.WriteFile(path, func(w io.Writer) error {
		_, err := io.WriteString(w, settings(m))
		return err
	}))
}

// settings returns the text of a [ConfigFile] with the default settings for a paper about the runs.
func settings(m *Model) string {
	plain := newBuilder(m, &Config{Widths: defaultWidths})
	p, known := plain.paper, plain.labels
	var b strings.Builder
	b.WriteString("# How dpsight paper shows these runs. All lines may be left out.\n")
	list := func(key string, values []string) {
		fmt.Fprintf(&b, "%s: [%s]\n", key, strings.Join(quoted(values), ", "))
	}
	if len(m.Names) > 0 {
		list("runs", m.Names)
	}
	b.WriteString("# The order of the methods, and those to show.\n")
	list("order", p.Methods)
	list("rows", p.Methods)
	b.WriteString("# The main table has labels, other tables and figures short ones, narrow columns heads of two lines.\n")
	for _, of := range []struct {
		key  string
		text func(Label) string
	}{{"labels", func(l Label) string { return l.Full }}, {"short", func(l Label) string { return l.Short }},
		{"heads", func(l Label) string { return l.Head }}, {"cite", func(l Label) string { return l.Cite }}} {
		var lines []string
		for _, key := range p.Methods {
			if text := of.text(known[key]); text != "" {
				lines = append(lines, fmt.Sprintf("  %s: %s\n", quote(key), quote(text)))
			}
		}
		if len(lines) > 0 {
			b.WriteString(of.key + ":\n" + strings.Join(lines, ""))
		}
	}
	list("tables", allTables)
	list("figures", allFigures)
	fmt.Fprintf(&b, "# What figures are drawn for, of %s.\nstyles: [column]\n", strings.Join(allStyles, ", "))
	fmt.Fprintf(&b, "# Whose memory is drawn: %s, or %s for all recorded steps too.\nsteps: %s\n", PeakStep, AllSteps,
		PeakStep)
	b.WriteString("# Runs, each with one change more than the one before.\nablation: []\n")
	columns := slices.DeleteFunc(slices.Clone(mainColumns), func(c string) bool { return !plain.worthColumn(c) })
	fmt.Fprintf(&b, "# Of %s.\ncolumns:\n  main: [%s]\n", strings.Join(mainColumns, ", "), strings.Join(columns, ", "))
	b.WriteString("# Of the document, in cm.\n")
	fmt.Fprintf(&b, "widths: {column: %g, page: %g}\n", defaultWidths.Column, defaultWidths.Page)
	b.WriteString("# Begins the names of labels and captions, if a document has tables and figures of several folders.\n" +
		"# prefix: batch-\n")
	b.WriteString("# Units are chosen by the values, and digits by how far repeats lie apart, unless they are named:\n" +
		"# units: {memory: GiB, time: s, energy: kJ}\n# digits: {memory: 2, time: 2, percent: 1, ratio: 2}\n")
	return b.String()
}

// quote returns a value as a YAML string, whatever characters it contains.
func quote(s string) string {
	text, err := yaml.Marshal(s)
	if err != nil || strings.Count(string(text), "\n") > 1 || strings.ContainsAny(s, ",[]{}:#|") {
		return fmt.Sprintf("%q", s)
	}
	return strings.TrimSpace(string(text))
}

func quoted(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quote(v)
	}
	return out
}
