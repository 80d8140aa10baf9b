package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/testkit"
	"github.com/dpsight/dpsight/report/table"
	"github.com/dpsight/dpsight/schemas/store"
)

const presetsPage = "../../docs/presets.md"

// presetsTorch is the torch release with which the bytes in docs/presets.md were predicted.
const presetsTorch = "2.11."

var presetsBlock = regexp.MustCompile(`(?s)<!-- presets (\w+) -->\n(.*?)<!-- end -->`)

// presetColumns are the sizes that docs/presets.md shows for each model.
var presetColumns = map[string][]table.Column{
	"transformer": {{Title: "Vocabulary", Key: "vocab_size"}, {Title: "Hidden", Key: "hidden_dim"},
		{Title: "Layers", Key: "num_layers"},
		{Title: "Heads", Key: "num_heads"}, {Title: "Sequence", Key: "seq_len"}, {Title: "Batch", Key: "batch_size"}},
	"mlp": {{Title: "Widths", Key: "mlp_dims"}, {Title: "Batch", Key: "batch_size"}},
}

// docs/presets.md has the sizes of the presets, and the predicted memory of training with each preset by the method
// vanilla.
func TestPresets(t *testing.T) {
	testkit.Rest(t)
	if testing.Short() {
		t.Skip("it records every preset")
	}
	t.Parallel()
	page, err := os.ReadFile(presetsPage)
	if err != nil {
		t.Fatal(err)
	}
	runs := recordPresets(t)
	shown := 0
	fresh := presetsBlock.ReplaceAllFunc(page, func(b []byte) []byte {
		model := string(presetsBlock.FindSubmatch(b)[1])
		var out bytes.Buffer
		if err := table.Write(&out, "markdown", presetsTable(model, runs)); err != nil {
			t.Fatal(err)
		}
		shown++
		return fmt.Appendf(nil, "<!-- presets %s -->\n%s\n<!-- end -->", model, out.String())
	})
	switch {
	case shown != len(presetColumns):
		t.Errorf("the page shows %d of %d models", shown, len(presetColumns))
	case *update:
		if err := os.WriteFile(presetsPage, fresh, 0o644); err != nil {
			t.Fatal(err)
		}
	case !bytes.Equal(fresh, page):
		t.Errorf("%s shows other sizes than the presets have: go test ./cmd/dpsight -run TestPresets -update",
			presetsPage)
	}
}

// presetRun has the figures of one preset's run.
type presetRun struct {
	params                     map[string]any
	parameters, peak, reserved int64
}

// recordPresets makes a run of each model and preset, in one suite, and returns them by name: MODEL-PRESET.
func recordPresets(t *testing.T) map[string]presetRun {
	t.Helper()
	interpreter, dir := python(t), t.TempDir()
	suite := "defaults: {num_iter: 1, warmup_iter: 1}\nexperiments:\n"
	for _, p := range experiments.Presets() {
		for model := range presetColumns {
			if p.For(model) != nil {
				suite += fmt.Sprintf("  - {method: vanilla, model: %s, preset: %s, name: %s-%s}\n", model, p.Name,
					model, p.Name)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "presets.yaml"), []byte(suite), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "collect", "--suite", "presets.yaml", "--jobs", "2", "--device", "phantom", "--python", interpreter,
		"--store", "store", "--no-report")
	sel, err := store.Open(filepath.Join(dir, "store")).All()
	if err != nil {
		t.Fatal(err)
	}
	if torch := sel.Runs[0].Manifest.Environment.Torch; !strings.HasPrefix(torch, presetsTorch) {
		t.Skipf("the page is of torch %s, and this is %s: other kernels, other temporaries", presetsTorch, torch)
	}
	var runs struct {
		Runs []struct {
			Name     string
			Params   map[string]any
			Peak     int64 `json:"peak_bytes"`
			Reserved int64 `json:"peak_reserved_bytes"`
		}
	}
	var breakdown breakdownDoc
	for command, doc := range map[string]any{"runs": &runs, "analyze breakdown store": &breakdown} {
		args := append(strings.Fields(command), "--store", "store", "--format", "json")
		if err := json.Unmarshal([]byte(must(t, dir, args...).stdout), doc); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]presetRun{}
	for _, r := range runs.Runs {
		out[r.Name] = presetRun{params: r.Params, peak: r.Peak, reserved: r.Reserved}
	}
	for _, r := range breakdown.Runs {
		run := out[r.Name]
		for _, c := range r.Devices[0].Categories {
			if c.Category == "parameters" {
				run.parameters = c.Bytes / 4 // fp32
			}
		}
		out[r.Name] = run
	}
	return out
}

func presetsTable(model string, runs map[string]presetRun) table.Table {
	t := table.Table{Columns: []table.Column{{Title: "Preset", Key: "preset"}}}
	for _, c := range presetColumns[model] {
		c.Right = true
		t.Columns = append(t.Columns, c)
	}
	t.Columns = append(t.Columns, table.Column{Title: "Parameters", Right: true},
		table.Column{Title: "Peak allocated MiB", Right: true},
		table.Column{Title: "Peak reserved MiB", Right: true})
	for _, p := range experiments.Presets() {
		run, ok := runs[model+"-"+p.Name]
		if !ok {
			continue
		}
		row := []table.Cell{table.Text(p.Name)}
		for _, c := range presetColumns[model] {
			switch v := run.params[c.Key].(type) {
			case float64:
				row = append(row, table.Count(int64(v)))
			default:
				row = append(row, table.Text(fmt.Sprint(v)))
			}
		}
		t.Rows = append(t.Rows, append(row, table.Count(run.parameters), table.Bytes(run.peak),
			table.Bytes(run.reserved)))
	}
	return t
}
