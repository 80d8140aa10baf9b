package report

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpsight/dpsight/analyze/compare"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/screen"
	"github.com/dpsight/dpsight/schemas/units"
)

// demoColumns is the width of the demo's lines, which fits common terminals.
const demoColumns = 80

// demoMethods are the demo's names for methods.
var demoMethods = map[string]string{"vanilla": "plain training", "dpsgd": "DP-SGD as Opacus does it",
	"ghost": "DP-SGD by Opacus' ghost clipping"}

// optimizers maps optimizers to their usual spelling.
var optimizers = map[string]string{"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}

// DemoOpening describes what the demo is about to do on the phantom GPU. params are the parameters of its runs.
func DemoOpening(gpu string, params map[string]any) string {
	how := fmt.Sprintf("batch %v, sequence %v, %v, %s", params["batch_size"], params["seq_len"], params["precision"],
		optimizers[fmt.Sprint(params["optimizer"])])
	return screen.Wrap("What does differential privacy cost? dpsight trains a transformer of 1.3 billion parameters "+
		"three times ("+how+"), and records who holds each byte of the GPU's memory.\n"+
		"No GPU is used: torch runs on a phantom GPU, which computes nothing, and its allocator shows what an "+gpu+
		" would hold. It takes about a minute.", demoColumns, "")
}

// DemoOnGPU describes what the demo does on a machine with a GPU.
func DemoOnGPU(device string) string {
	return screen.Wrap("dpsight: "+device+". The demo records five small experiments on it, with memory and times; "+
		"dpsight demo --device phantom shows a model of 1.3 billion parameters.", demoColumns, "  ")
}

// DemoRun returns the line that is printed when a run of the demo begins.
func DemoRun(i, of int, method string) string {
	return fmt.Sprintf("  %d of %d: %s, %s", i+1, of, method, demoMethods[method])
}

// demoReasons returns, by category, why a private method holds such bytes.
func demoReasons() map[schemas.Category]string {
	return map[schemas.Category]string{
		schemas.PerSampleGradients: "a gradient for each sample of the batch, so that each can be clipped",
		schemas.SummedGradients:    "the sum of the clipped gradients, kept beside the gradients themselves",
	}
}

// WriteDemo writes sentences on what privacy cost, and on where the report is.
func WriteDemo(w io.Writer, s compare.Study, store, folder string) error {
	var b strings.Builder
	b.WriteByte('\n')
	reasons := demoReasons()
	for i := range s.Cells {
		if text := demoSentence(&s.Cells[i], reasons); text != "" {
			b.WriteString(screen.Wrap(text, demoColumns, "  ") + "\n")
		}
	}
	in := ""
	if store != "runs" {
		in = " --store " + units.Printable(store)
	}
	b.WriteString(screen.Wrap("\nThe report lies in "+units.Printable(filepath.Clean(folder))+
		": index.html is the page, figures/breakdown.png shows these peaks.", demoColumns, "  "))
	b.WriteString("\nGo on with\n")
	for _, next := range [][2]string{
		{"breakdown dpsgd" + in, "what holds its peak, by category"},
		{"explain vanilla dpsgd" + in, "why they differ, layer by layer"},
		{"predict python train.py", "what your script needs"}} {
		fmt.Fprintf(&b, "  dpsight %-*s  # %s\n", len("predict python train.py")+len(in), next[0], next[1])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// demoSentence describes one method: its peak, compared with plain training if it is private, and its largest part.
// demoSentence removes the reasons that it uses from the map, so that each reason appears once.
func demoSentence(c *compare.Cell, reasons map[schemas.Category]string) string {
	name := demoMethods[fmt.Sprint(c.Params["method"])]
	if name == "" || c.PeakBytes == nil || len(c.Breakdown.Devices) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s%s (%s) needs %s at its peak", strings.ToUpper(name[:1]), name[1:], c.Label, gib(*c.PeakBytes))
	if over := c.Overhead; over != nil && over.PeakRatio != nil && !c.IsBaseline() {
		parts := map[schemas.Category]int64{}
		for _, d := range over.Categories {
			parts[d.Category] = d.DeltaBytes
		}
		text = fmt.Sprintf("%s, %.2f times as much. It adds %s", text, *over.PeakRatio, largest(parts, reasons))
		for c := range parts {
			parts[c] = -parts[c]
		}
		if less := largest(parts, reasons); less != "" {
			text += ", and holds less: " + less
		}
		return text + "."
	}
	parts := map[schemas.Category]int64{}
	for _, p := range c.Breakdown.Devices[0].Categories {
		parts[p.Category] = p.Bytes
	}
	return text + ": " + largest(parts, reasons) + "."
}

// largest lists the parts of a peak, or of a difference, that have at least 1 GiB, the largest first, with those of the
// reasons that no earlier sentence used.
func largest(parts map[schemas.Category]int64, reasons map[schemas.Category]string) string {
	var words []string
	for _, c := range slices.SortedStableFunc(slices.Values(schemas.Categories), func(a, b schemas.Category) int {
		return cmp.Compare(parts[b], parts[a])
	}) {
		if parts[c] < 1<<30 {
			continue
		}
		word := gib(parts[c]) + " of " + strings.ReplaceAll(strings.Replace(string(c), "per_", "per-", 1), "_", " ")
		if why := reasons[c]; why != "" {
			word += " (" + why + ")"
			delete(reasons, c)
		}
		words = append(words, word)
	}
	if n := len(words); n > 1 {
		words = append(words[:n-2], words[n-2]+" and "+words[n-1])
	}
	return strings.Join(words, ", ")
}

func gib(bytes int64) string { return units.Fixed(float64(bytes)/(1<<30), 1) + " GiB" }
