package experiments

import (
	"fmt"
	"strings"
)

// PresetList is what the presets stand for, a line each, for help.
func PresetList() string {
	var b strings.Builder
	for _, p := range Presets() {
		fmt.Fprintf(&b, "  %-8s", p.Name)
		if s := p.For("transformer"); s != nil {
			fmt.Fprintf(&b, "vocabulary %v, hidden %v, %v layers, %v heads, sequence %v, batch %v", s["vocab_size"],
				s["hidden_dim"], s["num_layers"], s["num_heads"], s["seq_len"], s["batch_size"])
		}
		if s := p.For("mlp"); s != nil {
			fmt.Fprintf(&b, "; MLP %v, batch %v", s["mlp_dims"], s["batch_size"])
		}
		b.WriteByte('\n')
	}
	return b.String()
}
