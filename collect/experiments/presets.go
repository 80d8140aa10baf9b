package experiments

import (
	"fmt"
	"strings"
)

// PresetList describes the presets, one line each, for help.
func PresetList() string {
	var b strings.Builder
	row := func(name string, cells ...any) {
		line := fmt.Sprintf("  %-7s %10v %7v %7v %6v %9v %6v", append([]any{name}, cells...)...)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("", "vocabulary", "hidden", "layers", "heads", "sequence", "batch")
	for _, p := range Presets() {
		if s := p.For("transformer"); s != nil {
			row(p.Name, s["vocab_size"], s["hidden_dim"], s["num_layers"], s["num_heads"], s["seq_len"], s["batch_size"])
		}
		if s := p.For("mlp"); s != nil {
			fmt.Fprintf(&b, "  %-7s MLP %v, batch %v\n", "", s["mlp_dims"], s["batch_size"])
		}
	}
	return b.String()
}
