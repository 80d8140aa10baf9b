package join

import (
	"strings"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/spool"
)

// role is a rule that gives a module its role by the module's class, by its last name, or by any name in its path.
type role struct {
	name  string
	class []string // parts of the class's name, in lower case
	last  []string // parts of the module's own name
	path  []string // parts of any name in the path
}

// roles are tried in order. A norm inside an attention block is a norm, and a projection inside it is attention.
var roles = []role{
	{"lora", []string{"lora"}, nil, []string{"lora_"}},
	{"norm", []string{"norm"}, nil, nil},
	{"embedding", []string{"embedding"}, []string{"wte", "wpe"}, nil},
	{"head", nil, []string{"head", "lm_head", "classifier", "score", "embed_out", "fc_out"}, nil},
	{"attention", []string{"attention"}, []string{"q", "k", "v", "o", "q_proj", "k_proj", "v_proj", "o_proj",
		"out_proj", "qkv", "query", "key", "value"}, []string{"attn", "attention"}},
	{"mlp", []string{"mlp", "feedforward"}, []string{"fc1", "fc2", "up_proj", "down_proj", "gate_proj"},
		[]string{"mlp", "ffn", "feed_forward"}},
}

// Role returns the role of a module with a class and a dotted path.
func Role(class, path string) string {
	class, path = strings.ToLower(class), strings.ToLower(path)
	names := strings.Split(path, ".")
	last := names[len(names)-1]
	for _, r := range roles {
		for _, c := range r.class {
			if strings.Contains(class, c) {
				return r.name
			}
		}
		for _, n := range r.last {
			if last == n {
				return r.name
			}
		}
		for _, part := range r.path {
			for _, n := range names {
				if strings.Contains(n, part) {
					return r.name
				}
			}
		}
	}
	return "other"
}

// Modules returns the rows of modules.parquet. If a module was recorded several times, the last record counts.
func Modules(runID string, rank int32, infos []spool.ModuleInfo) []schemas.Module {
	at := map[uint32]int{}
	var rows []schemas.Module
	for _, m := range infos {
		row := schemas.Module{RunID: runID, Rank: rank, ID: int64(m.ID), Path: m.Path, Class: m.Class,
			Role:           Role(m.Class, m.Path),
			ParameterBytes: m.ParameterBytes}
		if m.NormBy != nil {
			row.NormBy = *m.NormBy
		}
		if i, ok := at[m.ID]; ok {
			rows[i] = row
			continue
		}
		at[m.ID] = len(rows)
		rows = append(rows, row)
	}
	return rows
}
