package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// dpsight completes words: commands and their short forms, options, and the values of options and arguments.
func TestCompletion(t *testing.T) {
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	complete := func(line string) string {
		cmd := exec.Command("dpsight")
		cmd.Dir, cmd.Env = examples, append(cmd.Environ(), "COMP_LINE="+line)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return strings.Join(strings.Fields(string(out)), " ")
	}
	for line, want := range map[string]string{
		"dpsight co":                                                      "collect compare completion cost",
		"dpsight analyze ph":                                              "phases",
		"dpsight phases --fo":                                             "--format",
		"dpsight phases --format ":                                        "csv json latex markdown table",
		"dpsight phases --format=c":                                       "csv",
		"dpsight collect --suite q":                                       "quick",
		"dpsight collect --method gh":                                     "ghost",
		"dpsight collect --preset t":                                      "tiny",
		"dpsight collect --device phantom:a":                              "phantom:a100-40 phantom:a100-80",
		"dpsight predict --device t":                                      "t4",
		"dpsight breakdown --store headline van":                          "vanilla vanilla-bare",
		"dpsight breakdown --store=headline 20261122T2045":                "20261122T204537Z-norm_only-b83bd5",
		"dpsight overhead --store headline --baseline dp":                 "dpsgd dpsgd-bare",
		"dpsight breakdown --store headline headl":                        "headline",
		"dpsight breakdown --store nowhere ":                              "",
		"dpsight completion ":                                             "bash fish zsh",
		"dpsight run --meth":                                              "--method",
		"dpsight help analyze ti":                                         "time timeline",
		"dpsight predict --device t4,h":                                   "t4,h100 t4,h200",
		"dpsight predict --device=h200,h":                                 "h200,h100",
		"dpsight predict --method vanilla,gh":                             "vanilla,ghost",
		"dpsight breakdown --by category,m":                               "category,module",
		"dpsight time --by ":                                              "class module role",
		"dpsight breakdown --at ":                                         "event= oom oom= peak phase= step=",
		"dpsight breakdown --at step=2,":                                  "2,phase=",
		"dpsight breakdown --store headline ghost --at phase=backward.":   "backward.grad backward.norm",
		"dpsight breakdown --store headline ghost --at=step=2,phase=zero": "zero_grad",
	} {
		if got := complete(line); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

// The completion script for bash asks dpsight for completions. The script returns only the part that bash takes for the
// current word, since bash also splits words at = and :.
func TestCompletionInBash(t *testing.T) {
	script := must(t, "", "completion", "bash").stdout
	const ask = `
COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
_dpsight
printf '%s\n' "${COMPREPLY[@]}"`
	for _, test := range []struct {
		line, want string
		words      []string // split as bash splits words, also at = and :
	}{
		{"dpsight brea", "breakdown", []string{"dpsight", "brea"}},
		{"dpsight predict --device=t", "t4", []string{"dpsight", "predict", "--device", "=", "t"}},
		{"dpsight phases --format=", "csv\njson\nlatex\nmarkdown\ntable", []string{"dpsight", "phases", "--format", "="}},
		{"dpsight breakdown --at step=1,p", "1,phase=", []string{"dpsight", "breakdown", "--at", "step", "=", "1,p"}},
		{"dpsight predict --device t4,l", "t4,l40s", []string{"dpsight", "predict", "--device", "t4,l"}},
		{"dpsight collect --device phantom:r", "rtx-4090", []string{"dpsight", "collect", "--device", "phantom", ":", "r"}},
	} {
		cmd := exec.Command("bash", append([]string{"-c", script + ask, "bash", test.line}, test.words...)...)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != test.want {
			t.Errorf("%s: %q, %v, want %q", test.line, got, err, test.want)
		}
	}
	for _, shell := range []string{"zsh", "fish"} {
		script := must(t, "", "completion", shell).stdout
		if !strings.Contains(script, "COMP_LINE") {
			t.Errorf("%s:\n%s", shell, script)
		}
		if path, err := exec.LookPath(shell); err == nil {
			file := filepath.Join(t.TempDir(), shell)
			if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(path, "-n", file).CombinedOutput(); err != nil {
				t.Errorf("%s does not read its script: %v\n%s", shell, err, out)
			}
			if shell == "fish" {
				ask := "source " + file + "; complete -C 'dpsight breakdown --at step=1,p'"
				out, err := exec.Command(path, "-c", ask).Output()
				if err != nil || !strings.Contains(string(out), "step=1,phase=\n") {
					t.Errorf("fish: %q, %v", out, err)
				}
			}
		}
	}
}

// The manual page has every command and every option. dpsight prints the same page each time.
func TestManualPage(t *testing.T) {
	page := must(t, "", "man").stdout
	if again := must(t, "", "man").stdout; again != page {
		t.Error("two calls print different pages")
	}
	if !strings.HasPrefix(page, ".TH DPSIGHT 1\n.SH NAME\n") {
		t.Errorf("it begins %q", page[:60])
	}
	var c cli
	parser, err := newParser(&c, t.Output(), t.Output(), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	options := 0
	err = kong.Visit(parser.Model, func(v kong.Visitable, next kong.Next) error {
		switch v := v.(type) {
		case *kong.Node:
			if v.Hidden {
				return nil
			}
			if v.Type == kong.CommandNode && !strings.Contains(page, v.Name) {
				t.Errorf("it lacks the command %s", v.Name)
			}
		case *kong.Flag:
			options++
			if !v.Hidden && !strings.Contains(page, "--"+v.Name) {
				t.Errorf("it lacks the option --%s", v.Name)
			}
		}
		return next(nil)
	})
	if err != nil || options < 80 {
		t.Errorf("%d options, %v", options, err)
	}
}
