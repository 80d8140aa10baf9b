package main

import (
	"fmt"
	"go/doc/comment"
	"strconv"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/cmd/grammar"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// unitOf lists the units of columns by the suffix of the column's name.
var unitOf = []struct{ suffix, unit string }{
	{"_bytes", "bytes"}, {"_ns", "ns"}, {"_percent", "%"}, {"_mw", "mW"}, {"_mj", "mJ"}, {"_mhz", "MHz"}, {"_c", "°C"},
	{"_mib", "MiB"}, {"_ms", "ms"},
}

func unit(column string) string {
	for _, u := range unitOf {
		if strings.HasSuffix(column, u.suffix) || column == strings.TrimPrefix(u.suffix, "_") && len(column) > 1 {
			return u.unit
		}
	}
	return ""
}

// tablesPage returns the reference's page of every table of a run's folder, with its columns.
func tablesPage(t *testing.T) string {
	s := readSource(t, "schemas")
	var m markdown
	m.line("# Tables\n")
	m.line("The tables of a run are Parquet files in its folder. `dpsight.open` reads them ([Python](../python.md)), " +
		"and so does any program that reads Parquet. Each row has `run_id` and `rank`, so that a query over many runs " +
		"needs no join. Bytes and nanoseconds are whole numbers; times are nanoseconds since the Unix epoch.\n")
	tables := s.tables()
	var rows [][]string
	for _, table := range tables {
		rows = append(rows, []string{"[" + code(table.name+".parquet") + "](#" + table.name + "parquet)",
			firstSentence(s.about(table.row))})
	}
	m.table([]string{"Table", "A row"}, rows)
	for _, table := range tables {
		m.line("## ", table.name, ".parquet\n")
		m.line("Version ", table.version, ". A row: ", s.about(table.row), "\n")
		rows = nil
		var choices []string
		for _, column := range s.members(t, table.row, "parquet", true) {
			typ := s.typeName(column.typ)
			null := ""
			if column.null {
				null = "yes"
			}
			rows = append(rows, []string{code(column.name), typ, unit(column.name), null, column.meaning})
			if of := s.choices(column.typ); len(of) > 0 {
				choices = append(choices, "Values of "+code(column.name)+": "+strings.Join(of, "; ")+".")
			}
		}
		m.table([]string{"Column", "Type", "Unit", "May be null", "Meaning"}, rows)
		for _, c := range choices {
			m.line(c, "\n")
		}
	}
	return strings.TrimSuffix(m.String(), "\n")
}

// about returns what a row of a table is, from the doc comment of the row's Go type.
func (s *source) about(row string) string {
	text := strings.Join(strings.Fields(s.docs[row]), " ")
	if _, rest, ok := strings.Cut(text, ".parquet: "); ok {
		text = rest
	}
	return s.said(text, nil)
}

// firstSentence returns a text's first sentence. A full stop ends it only before a capital or at the text's end.
func firstSentence(text string) string {
	for i := range text {
		if rest, ok := strings.CutPrefix(text[i:], ". "); ok && rest[:1] == strings.ToUpper(rest[:1]) {
			return text[:i+1]
		}
	}
	return text
}

// documentTypes lists the JSON documents of a store, with the Go type of each and the folder of the type's package.
var documentTypes = []struct{ file, dir, typ string }{
	{schemas.ManifestFile, "schemas", "Manifest"}, {schemas.IngestReportFile, "schemas", "IngestReport"},
	{schemas.SummaryFile, "schemas", "Summary"}, {schemas.TagsFile, "schemas", "Tags"},
	{"suites/ID.json", "schemas/store", "Suite"},
}

// documentsPage returns the reference's page of the files of a run's folder. For each JSON document it lists the keys.
func documentsPage(t *testing.T) string {
	var m markdown
	m.line("# Files of a run\n")
	m.line("A store is a folder of runs, by default `runs`. A run is a folder in it, named by the run's id.\n")
	s, journals := readSource(t, "schemas"), readSource(t, "schemas/spool")
	rows := [][]string{}
	for _, d := range documentTypes {
		rows = append(rows, []string{"[" + code(d.file) + "](#" + strings.ToLower(strings.NewReplacer(".", "", "/", "").
			Replace(d.file)) + ")", describes(readSource(t, d.dir), d.typ)})
	}
	rows = append(rows, []string{"`*.parquet`", "The [tables](tables.md)."})
	for _, name := range []string{"StdoutFile", "StderrFile"} {
		rows = append(rows, []string{code(s.values[name]), s.docs[name]})
	}
	rows = append(rows, []string{code(journals.values["Dir"] + "/"), journals.docs["Dir"]})
	m.table([]string{"File", "What it has"}, rows)
	m.line("Of an imported run the folder also keeps the file itself.\n")
	for _, d := range documentTypes {
		of := readSource(t, d.dir)
		m.line("## ", d.file, "\n")
		m.line(describes(of, d.typ), "\n")
		of.documentTable(t, &m, d.typ)
	}
	return strings.TrimSuffix(m.String(), "\n")
}

// describes returns the doc comment of a document's Go type, with "It" in place of the type's name, which readers of
// the file do not know.
func describes(s *source, typ string) string {
	text := strings.Join(strings.Fields(s.docs[typ]), " ")
	_, text, _ = strings.Cut(text, ") ")
	return "It " + s.said(text, nil)
}

// documentTable adds a table of a document's keys. A key of an inner object has its whole path, such as a.b.
func (s *source) documentTable(t *testing.T, m *markdown, typ string) {
	var rows [][]string
	var walk func(typ, prefix string)
	walk = func(typ, prefix string) {
		for _, key := range s.members(t, typ, "json", false) {
			name := s.typeName(key.typ)
			null := ""
			if key.null {
				null = "yes"
			}
			rows = append(rows, []string{code(prefix + key.name), name, unit(key.name), null, key.meaning})
			if inner := s.structOf(key.typ); inner != "" {
				dots := "."
				if strings.HasPrefix(name, "list of ") {
					dots = "[]."
				}
				walk(inner, prefix+key.name+dots)
			}
		}
	}
	walk(typ, "")
	m.table([]string{"Key", "Type", "Unit", "May be absent or null", "Meaning"}, rows)
}

// categoriesPage returns the reference's page of every category, in the order of precedence.
func categoriesPage(t *testing.T) string {
	var m markdown
	m.line("# List of categories\n")
	m.line("A category says what the bytes of a block are for. A block that several owners hold counts under the first " +
		"of them in this order. [Categories and columns](../categories.md) says how each is known.\n")
	var rows [][]string
	for i, row := range schemas.CategoryTable {
		named := ""
		if row.NamesParameters {
			named = "parameters and buffers"
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), code(row.Category), row.BytesOf, named,
			fmt.Sprintf("`#%06x`", row.Color)})
	}
	m.table([]string{"Order", "Category", "Bytes of", "Owners are named after", "Colour"}, rows)
	return strings.TrimSuffix(m.String(), "\n")
}

// findingsPage returns the reference's page of every kind of finding.
func findingsPage(t *testing.T) string {
	var m markdown
	m.line("# List of findings\n")
	m.line("`dpsight findings` lists what is worth changing in a run. [Findings](../findings.md) has the threshold of " +
		"each kind and how its saving is computed.\n")
	var rows [][]string
	for _, kind := range report.FindingKinds {
		rows = append(rows, []string{"[" + code(kind.ID) + "](../findings.md#" + kind.ID + ")", kind.Means, kind.Do})
	}
	m.table([]string{"Finding", "What it means", "What to do"}, rows)
	return strings.TrimSuffix(m.String(), "\n")
}

// devicesPage returns the reference's page of every device that the phantom GPU has a profile of.
func devicesPage(t *testing.T) string {
	var m markdown
	m.line("# GPUs that can be predicted\n")
	m.line("`dpsight predict --device NAME` and `dpsight collect --device phantom:NAME` play one of these GPUs. The "+
		"default is `", phantom.DefaultProfile, "`. `--gpu-memory 24GiB` gives it another size. [How prediction "+
		"works](../predict.md) says what a prediction rests on.\n")
	var rows [][]string
	var profiles []phantom.Profile
	for _, name := range phantom.Profiles() {
		p, err := phantom.LoadProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		profiles = append(profiles, p)
		total, context := p.Properties["total_memory_bytes"], p.Properties["context_bytes"]
		checked := "no"
		if p.Checked {
			checked = "yes, under torch " + p.CheckedTorch
		}
		rows = append(rows, []string{code(p.ID), p.Name, units.MiB(total), units.MiB(total - context),
			fmt.Sprintf("%d.%d", p.Properties["compute_major"], p.Properties["compute_minor"]),
			strconv.FormatInt(p.Properties["multiprocessors"], 10), checked})
	}
	m.table([]string{"Name", "GPU", "Memory", "Left for a process", "Compute capability", "Multiprocessors",
		"Compared with recordings"}, rows)
	for _, p := range profiles {
		m.line("## ", p.ID, "\n")
		m.line(markup.Replace(p.Source), "\n")
		rows = nil
		for _, property := range phantom.PropertyNames() {
			from := p.Sources[property]
			if why, assumed := p.Assumed[property]; assumed {
				from = "assumed: " + why
			}
			rows = append(rows, []string{code(property), strconv.FormatInt(p.Properties[property], 10), markup.Replace(from)})
		}
		m.table([]string{"Property", "Value", "Source, where it is another"}, rows)
	}
	return strings.TrimSuffix(m.String(), "\n")
}

// settingsPage returns the reference's page of the environment variables and of the files that configure dpsight.
func settingsPage(t *testing.T) string {
	var m markdown
	m.line("# Settings\n")
	m.line("An option on the command line comes first, then the environment, then a file.\n")
	m.line("## Environment variables\n")
	var rows [][]string
	for _, v := range grammar.Environment {
		rows = append(rows, []string{code(v.Name), prose(v.Means)})
	}
	m.table([]string{"Variable", "Meaning"}, rows)
	m.line("## dpsight.yaml\n")
	m.line("`dpsight check` reads it in the current folder, or the file of `--config` ([check](../check.md)).\n")
	s := readSource(t, "schemas")
	rows = nil
	for _, of := range []struct{ reader, prefix string }{{"parseConfig", ""}, {"check", "check."}} {
		for _, key := range s.keysOf(t, of.reader) {
			rows = append(rows, []string{code(of.prefix + key.name), key.meaning})
		}
	}
	m.table([]string{"Key", "Meaning"}, rows)
	m.line("## paper.yaml\n")
	m.line("`dpsight paper` reads it in the paper's folder; `--init` writes one ([paper](../paper.md)).\n")
	readSource(t, "report/paper").settingsTable(t, &m, "Config")
	m.line("## The file of a suite\n")
	m.line("`dpsight collect --suite FILE` reads it ([suites](../suites.md)).\n")
	readSource(t, "collect/suite").settingsTable(t, &m, "document")
	return strings.TrimSuffix(m.String(), "\n")
}

// settingsTable adds a table of a YAML file's keys. A key of an inner mapping has its whole path, such as a.b.
func (s *source) settingsTable(t *testing.T, m *markdown, typ string) {
	var rows [][]string
	var walk func(typ, prefix string)
	walk = func(typ, prefix string) {
		for _, key := range s.members(t, typ, "yaml", true) {
			rows = append(rows, []string{code(prefix + key.name), key.meaning})
			if inner := s.structOf(key.typ); inner != "" {
				walk(inner, prefix+key.name+".")
			}
		}
	}
	walk(typ, "")
	m.table([]string{"Key", "Meaning"}, rows)
}

// conditionsPage returns the reference's page on the conditions of --where, from the doc comment of the package that
// parses them.
func conditionsPage(t *testing.T) string {
	var m markdown
	m.line("# Conditions\n")
	s := readSource(t, "schemas/where")
	var p comment.Parser
	printer := comment.Printer{HeadingLevel: 2, HeadingID: func(*comment.Heading) string { return "" }}
	m.line(strings.TrimSpace(string(printer.Markdown(p.Parse(s.pkg)))), "\n")
	m.line("## Names of runs' facts\n")
	var rows [][]string
	facts := readSource(t, "schemas/store")
	for _, name := range facts.consts {
		if strings.HasPrefix(name, "fact") {
			rows = append(rows, []string{code(facts.values[name]), facts.docs[name]})
		}
	}
	m.table([]string{"Name", "Meaning"}, rows)
	return strings.TrimSuffix(m.String(), "\n")
}
