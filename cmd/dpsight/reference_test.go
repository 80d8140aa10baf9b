package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// referenceDir is the folder of the documentation's pages that this test generates from the code.
const referenceDir = "../../docs/reference"

// referencePages lists the pages of docs/reference, each with the function that makes its text.
var referencePages = map[string]func(*testing.T) string{
	"commands.md":   commandsPage,
	"tables.md":     tablesPage,
	"documents.md":  documentsPage,
	"categories.md": categoriesPage,
	"findings.md":   findingsPage,
	"devices.md":    devicesPage,
	"settings.md":   settingsPage,
	"conditions.md": conditionsPage,
}

// The pages of docs/reference equal what this test generates from the code. With -update the test writes the pages.
func TestReference(t *testing.T) {
	for name, page := range referencePages {
		path := filepath.Join(referenceDir, name)
		fresh := "<!-- written by: go test ./cmd/dpsight -run TestReference -update -->\n\n" + page(t) + "\n<!-- end -->\n"
		if *update {
			if err := os.MkdirAll(referenceDir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != fresh {
			t.Errorf("docs/reference/%s is not what the code says: go test ./cmd/dpsight -run TestReference -update (%v)",
				name, err)
		}
	}
	found, err := filepath.Glob(filepath.Join(referenceDir, "*"))
	if err != nil || len(found) != len(referencePages) {
		t.Errorf("docs/reference has %d files, and %d are written (%v)", len(found), len(referencePages), err)
	}
}

// A markdown is the text of a page that a test generates.
type markdown struct{ strings.Builder }

// line joins its arguments and adds them as a line.
func (m *markdown) line(parts ...string) {
	for _, part := range parts {
		m.WriteString(part)
	}
	m.WriteByte('\n')
}

// table adds a table. Columns that are empty in all rows are left out.
func (m *markdown) table(head []string, rows [][]string) {
	var kept []int
	for i := range head {
		for _, row := range rows {
			if row[i] != "" {
				kept = append(kept, i)
				break
			}
		}
	}
	cells := func(row []string) string {
		var b strings.Builder
		for _, i := range kept {
			b.WriteString("| " + row[i] + " ")
		}
		return b.String() + "|"
	}
	m.line(cells(head))
	m.line(strings.Repeat("|:---", len(kept)) + "|")
	for _, row := range rows {
		m.line(cells(row))
	}
	m.line()
}

var (
	markup    = strings.NewReplacer("<", "&lt;", "*", `\*`, "|", `\|`)
	option    = regexp.MustCompile(`(^|[\s(,])(--?[a-z][a-z-]*(?:[ =][A-Z][A-Z]*\b)?)`)
	pageNamed = regexp.MustCompile(`\bdocs/([a-z-]+)\.md\b`)
)

// prose returns plain text as Markdown. prose formats options as code, and makes links of the names of pages.
func prose(text string) string {
	text = option.ReplaceAllString(markup.Replace(text), "$1`$2`")
	return pageNamed.ReplaceAllString(text, "[docs/$1.md](../$1.md)")
}

// code returns text formatted as code, so that it also works in a cell of a table.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// The reference names every command, option, table, column, file, category, finding, device and variable. The test
// takes these names from where a user meets them, and not from the sources of the pages.
func TestReferenceIsComplete(t *testing.T) {
	pages := map[string]string{}
	for name := range referencePages {
		text, err := os.ReadFile(filepath.Join(referenceDir, name))
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(text)
	}
	looked := map[string]int{}
	has := func(page string, names ...string) {
		for _, name := range names {
			looked[page]++
			if !strings.Contains(pages[page], name) {
				t.Errorf("docs/reference/%s lacks %s", page, name)
			}
		}
	}
	for _, c := range commandsOf(programModel(t), "dpsight") {
		r := dpsight(t, "", append(strings.Fields(c.name)[1:], "--help")...)
		has("commands.md", "\n## "+c.name+"\n")
		_, section, _ := strings.Cut(pages["commands.md"], "\n## "+c.name+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--((?:\[no-\])?[a-z-]+)`).FindAllStringSubmatch(r.stdout, -1) {
			looked["option"]++
			where := section
			if !strings.Contains(where, "--"+m[1]) && strings.Contains(where, "It takes the options of [") {
				where = pages["commands.md"]
			}
			if !strings.Contains(where, "--"+m[1]) && m[1] != "help" && m[1] != "version" && m[1] != "wide" {
				t.Errorf("%s lacks --%s", c.name, m[1])
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(headlineStore, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		switch {
		case filepath.Base(filepath.Dir(path)) == "suites":
		case filepath.Ext(name) == ".parquet":
			has("tables.md", "\n## "+name+"\n")
			_, section, _ := strings.Cut(pages["tables.md"], "\n## "+name+"\n")
			section, _, _ = strings.Cut(section, "\n## ")
			for _, column := range columnsOf(t, path) {
				looked["column"]++
				if !strings.Contains(section, "\n| `"+column+"` |") {
					t.Errorf("docs/reference/tables.md lacks %s of %s", column, name)
				}
			}
		default:
			has("documents.md", "`"+name)
		}
	}
	has("categories.md", schemas.Categories...)
	text, err := os.ReadFile("../../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`<a id="([a-z-]+)">`).FindAllSubmatch(text, -1) {
		has("findings.md", "`"+string(m[1])+"`")
	}
	profiles, err := filepath.Glob("../../collect/phantom/profiles/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range profiles {
		has("devices.md", "\n## "+strings.TrimSuffix(filepath.Base(path), ".json")+"\n")
	}
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`\b(DPSIGHT_[A-Z_]+|PHANTOM_INIT)\b`)
	for _, path := range documents {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range variable.FindAllString(string(text), -1) {
			if !strings.HasPrefix(name, "DPSIGHT_TEST_") {
				has("settings.md", "`"+name+"`")
			}
		}
	}
	has("conditions.md", store.Facts()...)
	for what, least := range map[string]int{"commands.md": 30, "option": 300, "tables.md": 14, "column": 150,
		"documents.md": 5, "categories.md": 20, "findings.md": 40, "devices.md": 5, "settings.md": 8, "conditions.md": 10} {
		if looked[what] < least {
			t.Errorf("of %s only %d were looked for", what, looked[what])
		}
	}
}

// columnsOf returns the names of a Parquet file's columns.
func columnsOf(t *testing.T, path string) (names []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := schemas.OpenParquet(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range file.Schema().Fields() {
		names = append(names, field.Name())
	}
	return names
}
