package stackrules

import (
	"strings"
	"testing"

	"github.com/dpsight/dpsight/ingest/torchsnap"
)

// FuzzUserRules reads any bytes as a user's rules. Rules that Read accepts give each stack a meaning.
func FuzzUserRules(f *testing.F) {
	f.Add("- {category: inputs, file: my_loader/}\n- {role: forward, file: model\\.py$, function: ^(attend|mix)$}\n")
	f.Add("- {role: data, category: inputs, file: a}\n")
	f.Add("- {phase: load, file: a}\n")
	f.Add("[]")
	f.Add("- &a {role: data, file: x}\n- *a\n")
	f.Add("- {role: data, function: '(((a{1,1000}){1,1000}){1,1000})'}\n")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		all, err := Default.Before(rules)
		if err != nil {
			t.Fatalf("rules were read, and cannot be used: %v", err)
		}
		stacks := torchsnap.NewStacks()
		stacks.Add([]torchsnap.Frame{{Function: "attend", File: "model.py", Line: 1}})
		if _, err := all.Meanings(stacks); err != nil {
			t.Fatalf("rules were read, and cannot be used: %v", err)
		}
		all.Phases(stacks)
	})
}
