package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/analyze/predict"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/report"
	"github.com/dpsight/dpsight/report/table"
)

// shownSearch matches a search in a comment of the page on predictions, and the result that the page shows.
var shownSearch = regexp.MustCompile(`(?s)<!-- searched: dpsight (predict .*?) -->\n(.*?)<!-- end -->`)

// mostPicture bounds the page's picture in bytes, since each redrawn version stays in the repository's history.
const mostPicture = 90_000

// The values that fit according to docs/predict.md come from a search whose result is kept in examples/fit. The tables
// and the picture of docs/predict.md are made from the document examples/fit/fit.json. If the test has a Python
// interpreter, it predicts again the two values that decide one cell, which takes a minute.
func TestFitPage(t *testing.T) {
	page, picture := filepath.Join("..", "..", "docs", "predict.md"), filepath.Join("..", "..", "docs", "gallery",
		"fit.png")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	m := shownSearch.FindSubmatch(text)
	if m == nil {
		t.Fatal("the page shows no search")
	}
	command := string(m[1])
	kept, err := os.ReadFile(filepath.Join("..", "..", "examples", "fit", "fit.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc predict.FitDocument
	if err := json.Unmarshal(kept, &doc); err != nil {
		t.Fatal(err)
	}
	v := &doc.Vary
	if asked := fmt.Sprintf("--vary %s=%d..%d:%d ", v.Name, v.Low, v.High, v.Step); !strings.Contains(command+" ",
		asked) {
		t.Errorf("the document is of %s, the command is %s", asked, command)
	}
	var shown, drawn bytes.Buffer
	tables := report.FitTables(doc)
	if err := table.Write(&shown, "markdown", tables[:len(tables)-1]...); err != nil { // without the list of runs
		t.Fatal(err)
	}
	f := report.FitFigure(doc)
	if err := f.WritePNG(&drawn); err != nil {
		t.Fatal(err)
	}
	picked := fewerShades(t, drawn.Bytes())
	fresh := "<!-- searched: dpsight " + command + " -->\n`dpsight " + command + "`\n\n![Reserved GPU memory by " +
		"batch size, for each method on each device](gallery/fit.png)\n\n" + shown.String() + "\n<!-- end -->"
	if *update {
		if err := os.WriteFile(page, bytes.Replace(text, m[0], []byte(fresh), 1), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(m[0]) != fresh {
		t.Errorf("%s shows another search than examples/fit: go test ./cmd/dpsight -run TestFitPage -update", page)
	}
	showsPicture(t, picture, picked, "TestFitPage")
	if len(picked) > mostPicture {
		t.Errorf("the picture takes %d bytes, over %d", len(picked), mostPicture)
	}
	if testkit.WithRest() {
		decided(t, &doc, command)
	}
}

// fewerShades reduces a picture to 16 shades a channel: it looks the same and takes half the bytes.
func fewerShades(t *testing.T, picture []byte) []byte {
	t.Helper()
	drawn, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	from, ok := drawn.(*image.Paletted)
	if !ok {
		t.Fatalf("the picture is a %T", drawn)
	}
	shade := func(v uint32) uint8 { return uint8((v>>8 + 8) / 17 * 17) }
	var colors color.Palette
	places := map[color.RGBA]uint8{}
	to := make([]uint8, len(from.Palette)) // index in colors, by index in the picture's palette
	for i, c := range from.Palette {
		r, g, b, _ := c.RGBA()
		rounded := color.RGBA{shade(r), shade(g), shade(b), 255}
		if _, ok := places[rounded]; !ok {
			places[rounded] = uint8(len(colors))
			colors = append(colors, rounded)
		}
		to[i] = places[rounded]
	}
	for i, p := range from.Pix {
		from.Pix[i] = to[p]
	}
	from.Palette = colors
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, from); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// decided takes the last cell with a value that fits and a value that does not. decided searches again from the largest
// value that fits to the smallest value that does not, and expects the same results.
func decided(t *testing.T, doc *predict.FitDocument, command string) {
	interpreter := os.Getenv("DPSIGHT_TEST_PYTHON")
	if interpreter == "" {
		return
	}
	var c *predict.FitCell
	for i := range doc.Cells {
		if doc.Cells[i].Outcome == predict.FitSome {
			c = &doc.Cells[i]
		}
	}
	if c == nil {
		t.Fatal("no cell of the document has a value that fits and one that does not")
	}
	args := strings.Fields(strings.TrimPrefix(command, "predict "))
	for i := range args[:len(args)-1] {
		switch args[i] {
		case "--device":
			args[i+1] = c.Profile
		case "--method":
			args[i+1] = c.Method
		case "--vary":
			args[i+1] = fmt.Sprintf("%s=%d..%d:%d", doc.Vary.Name, *c.Largest, *c.Refused, doc.Vary.Step)
		}
	}
	r, again := searched(t, t.TempDir(), append(args, "--python", interpreter)...)
	if len(again.Cells) != 1 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if n := &again.Cells[0]; n.Largest == nil || *n.Largest != *c.Largest || n.Refused == nil ||
		*n.Refused != *c.Refused || *n.PeakBytes != *c.PeakBytes || *n.PeakReservedBytes != *c.PeakReservedBytes ||
		n.MemoryBytes != c.MemoryBytes {
		t.Errorf("%s on %s is now\n%s", c.Method, c.GPU, r.stdout)
	}
}
