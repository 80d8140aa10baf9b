package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// replacedFlags lists the flags of the profilers that users come from, by the heading of the profiler's section in
// docs/migration.md. A flag with a fixed choice of values has these values.
var replacedFlags = map[string]map[string][]string{
	"## Component profilers": {
		"--experiment": {"vanilla", "ghost", "flash_clip", "bookkeeping", "flash_clip_bookkeeping", "flash_clip_bk",
			"ghost_fsdp_bk"},
		"--mode": {"no_dp", "ghost", "flash", "ghost_bk", "flash_bk", "ghost_fsdp", "flash_fsdp",
			"flash_fsdp_bk"},
		"--output": nil, "--input-dir": nil, "--output-dir": nil, "--baseline": nil, "--current": nil,
		"--threshold":  nil,
		"--vocab-size": nil, "--hidden-dim": nil, "--num-layers": nil, "--num-heads": nil, "--seq-len": nil,
		"--seq-length": nil,
		"--batch-size": nil, "--num-iter": nil, "--warmup-iter": nil, "--sigma": nil, "--max-grad-norm": nil,
		"--learning-rate": nil,
		"--model-name":    nil, "--token": nil, "--image-size": nil, "--patch-size": nil, "--in-channels": nil,
		"--num-classes": nil,
	},
	"## Trainer profilers": {
		"--mode":       {"profile", "test", "single"},
		"--trainer":    {"StandardTrainer", "DPSGDTrainer", "DPGhostClippingTrainer", "DPFastGradientClippingTrainer"},
		"--model-size": {"tiny", "small", "medium", "1b"},
		"--batch-size": nil, "--seq-len": nil, "--logs-dir": nil, "--output": nil,
	},
}

var word = regexp.MustCompile(`(?:--)?[A-Za-z0-9_][A-Za-z0-9_-]*`)

// In docs/migration.md, every flag of a replaced profiler, and every value of a flag with choices, is in the left
// column of its section's table, with dpsight's counterpart beside it.
func TestMigrationHasEveryFlag(t *testing.T) {
	text, err := os.ReadFile("../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	for heading, flags := range replacedFlags {
		_, section, found := strings.Cut(string(text), "\n"+heading)
		if !found {
			t.Fatalf("the page lacks %q", heading)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		rows := leftColumn(section)
		for flag, values := range flags {
			if !slices.ContainsFunc(rows, func(words []string) bool { return slices.Contains(words, flag) }) {
				t.Errorf("%s lacks %s", heading, flag)
			}
			for _, value := range values {
				if !slices.ContainsFunc(rows, func(words []string) bool {
					return slices.Contains(words, flag) && slices.Contains(words, value)
				}) {
					t.Errorf("%s lacks %s %s", heading, flag, value)
				}
			}
		}
	}
}

// leftColumn returns the code words in the first cells of a table whose second cells are not empty, by row and
// word.
func leftColumn(section string) (rows [][]string) {
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.TrimSpace(cells[2]) == "" {
			continue
		}
		var words []string
		for i, code := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				words = append(words, word.FindAllString(code, -1)...)
			}
		}
		rows = append(rows, words)
	}
	return rows
}
