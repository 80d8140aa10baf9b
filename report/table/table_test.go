package table

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata")

func sampleTable() Table {
	peak := int64(65761837056)
	return Table{Title: "A & B_c 50 %", Columns: []Column{{Title: "Run", Key: "run"},
		{Title: "Peak MiB", Key: "peak_bytes", Right: true}, {Title: "Δ", Key: "delta_bytes", Right: true}},
		Rows: [][]Cell{
			{Text("vanilla"), Optional(&peak, Bytes), DeltaBytes(0)},
			{Text(`a|b_c & <i> \x{1}$ #2 ~^ "q", z`), Bytes(1), DeltaBytes(-1234567890)},
			{Text("按样本 ghost"), Absent(), DeltaBytes(1)},
			{Text("evil\x1b[2J\nname"), Optional((*int64)(nil), Bytes), DeltaBytes(3 << 20)},
		},
		Notes: []string{"50 % of runs are *predicted* (phantom_h200)"}}
}

func TestFormats(t *testing.T) {
	for _, f := range Names() {
		var b bytes.Buffer
		if err := Write(&b, f, sampleTable()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "sample."+f)
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s: got\n%s\nwant\n%s", f, b.Bytes(), want)
		}
		if strings.Contains(b.String(), "\x1b") {
			t.Errorf("%s: an escape sequence reached the output", f)
		}
	}
	if err := Write(new(bytes.Buffer), "html", sampleTable()); err == nil ||
		!strings.Contains(err.Error(), "table, json, csv, markdown, latex") {
		t.Errorf("unknown format: %v", err)
	}
}

func TestMachineFormatsKeepValues(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, "csv", sampleTable()); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if rows[1][1] != "65761837056" || rows[3][1] != "" || rows[2][2] != "-1234567890" ||
		rows[4][0] != "evil�[2J name" {
		t.Errorf("CSV: %q", rows)
	}
	b.Reset()
	if err := Write(&b, "json", sampleTable()); err != nil {
		t.Fatal(err)
	}
	var doc struct{ Rows []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if v, ok := doc.Rows[2]["peak_bytes"]; !ok || v != nil {
		t.Errorf("an absent fact is %v in JSON, not null", v)
	}
	b.Reset()
	first := sampleTable()
	first.Document = map[string]int{"only": 1}
	if err := Write(&b, "json", first, sampleTable()); err != nil {
		t.Fatal(err)
	}
	if d := json.NewDecoder(&b); d.Decode(&struct{}{}) != nil || d.More() {
		t.Error("JSON is not one document")
	}
}

// If a row begins with a bracket, LaTeX would read the bracket as an argument of the line break before it.
func TestLaTeXRowThatBeginsWithABracket(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, "latex", Table{Columns: []Column{{Title: "Run"}}, Rows: [][]Cell{{Text("a")},
		{Text("[5mm] b")}}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "a \\\\\n{}[5mm] b \\\\\n") {
		t.Error(b.String())
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Bytes(0).Text, "0.00"}, {Bytes(1).Text, "<0.01"}, {Bytes(-1).Text, ">−0.01"},
		{Bytes(62716*1<<20 + 1<<19).Text, "62,716.50"},
		{Bytes(-(1000 << 20)).Text, "−1,000.00"},
		{Number(-0.0001, 2).Text, "0.00"}, {Number(999.999, 2).Text, "1,000.00"}, {Number(1234567, 0).Text, "1,234,567"},
		{Number(-12345.6, 1).Text, "−12,345.6"},
		{Size(0), "0 B"}, {Size(1023), "1,023 B"}, {Size(1 << 10), "1.00 KiB"}, {Size(1<<30 - 1), "1.00 GiB"},
		{Size(-(3 << 29)), "−1.50 GiB"}, {Size(5 << 40), "5.00 TiB"},
		{Milliseconds(0.1234).Text, "0.123"}, {Milliseconds(19032.5).Text, "19,032.5"}, {DeltaMilliseconds(-1).Text,
			"−1.000"}, {Ratio(1.07).Text, "1.070×"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// In LaTeX, a table that is wider than a page is divided into parts, one below the other. The table has as few parts as
// possible. Each part has the first column, and no part is wider than necessary.
func TestWideLaTeX(t *testing.T) {
	wide := Table{Columns: []Column{{Title: "Run"}}, Rows: [][]Cell{{Text("vanilla")}}}
	for j := range 10 {
		// The title has 16 characters, and a space separates it from the next column.
		wide.Columns = append(wide.Columns, Column{Title: fmt.Sprintf("Column %d of ten", j)})
		wide.Rows[0] = append(wide.Rows[0], Text(fmt.Sprint(j)))
	}
	if got, want := wide.pages(latexWidth), [][]int{{0, 1, 2, 3, 4, 5}, {0, 6, 7, 8, 9, 10}}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := wide.pages(1000); len(got) != 1 || len(got[0]) != 11 {
		t.Errorf("there is room for all: %v", got)
	}
	if got := wide.pages(1); len(got) != 10 {
		t.Errorf("a column that is wider than the page stands beside the first: %v", got)
	}
	wide.Columns[4].Begins = true
	if got, want := wide.pages(150), [][]int{{0, 1, 2, 3}, {0, 4, 5, 6, 7, 8, 9, 10}}; !reflect.DeepEqual(got, want) {
		t.Errorf("a subject stays together: %v, want %v", got, want)
	}
	wide.Columns[4].Begins = false
	var b bytes.Buffer
	if err := Write(&b, "latex", wide); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "\\begin{tabular}") != 2 || strings.Count(got, "vanilla & ") != 2 ||
		strings.Count(got, "\\medskip") != 1 {
		t.Error(got)
	}
}

// A table without columns is a title with sentences below it.
func TestSentencesAlone(t *testing.T) {
	for format, want := range map[string]string{"table": "T\nnote: none\n", "markdown": "**T**\n\n- none\n"} {
		var b strings.Builder
		if err := Write(&b, format, Table{Title: "T", Notes: []string{"none"}}); err != nil || b.String() != want {
			t.Errorf("%s: %q, %v, want %q", format, b.String(), err, want)
		}
	}
}

// In CSV, a text that a spreadsheet would read as a formula is escaped. Numbers stay numbers.
func TestCSVHasNoFormulas(t *testing.T) {
	values := []any{"=HYPERLINK(1)", "+1+2", "-2+3", "@SUM(1)", "\t=1", "-5", "-1.5e3", "a=b", -3, 2.5}
	want := []string{"'=HYPERLINK(1)", "'+1+2", "'-2+3", "'@SUM(1)", " =1", "-5", "-1.5e3", "a=b", "-3", "2.5"}
	table := Table{Columns: []Column{{Title: "v"}}}
	for _, v := range values {
		table.Rows = append(table.Rows, []Cell{{Text: "x", Value: v}})
	}
	var b bytes.Buffer
	if err := Write(&b, "csv", table); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows[1:] {
		if row[0] != want[i] {
			t.Errorf("%v becomes %q, want %q", values[i], row[0], want[i])
		}
	}
}

// A name cannot move the terminal's cursor, reverse the direction of a line, or end a formula between dollar signs.
func TestNamesAreHarmless(t *testing.T) {
	table := Table{Title: "t", Columns: []Column{{Title: "v"}},
		Rows: [][]Cell{{Text("a\x1b[31mb\u202ec\u009b2Jd\x7f $e$")}}, Notes: []string{"\x1b]0;title\a"}}
	for _, format := range Names() {
		var b bytes.Buffer
		if err := Write(&b, format, table); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(b.String(), "\x1b\u202e\u009b\x7f\a") {
			t.Errorf("%s: %q", format, b.String())
		}
		if format == "json" && !json.Valid(b.Bytes()) {
			t.Errorf("%s", b.String())
		}
		if (format == "markdown" || format == "latex") && !strings.Contains(b.String(), `\$e\$`) {
			t.Errorf("%s: dollar signs in %q", format, b.String())
		}
	}
}
