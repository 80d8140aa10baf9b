package grammar

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/posener/complete"
	"github.com/willabides/kongplete"

	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/schemas/store"
)

//go:embed shells
var shells embed.FS

// Completion is the command that prints what a shell evaluates to complete the words of dpsight.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Help is what stands above the options.
func (Completion) Help() string {
	return `Prints a script that makes a shell complete commands, options, runs of the store,
suites, methods and devices.

Examples:
  dpsight completion bash > ~/.local/share/bash-completion/completions/dpsight
  dpsight completion zsh > ~/.zfunc/_dpsight   # a folder of fpath
  dpsight completion fish > ~/.config/fish/completions/dpsight.fish`
}

// Run prints the script.
func (c *Completion) Run(line *kong.Context) error {
	script, err := shells.ReadFile("shells/" + c.Shell)
	if err != nil {
		return err
	}
	_, err = line.Stdout.Write(script)
	return err
}

// Complete prints what the word that is typed in a shell can become, a line each, where a shell asks: the line is then
// in the environment. It reports whether one did.
func Complete(parser *kong.Kong) bool {
	line := os.Getenv("COMP_LINE")
	if line == "" {
		return false
	}
	for _, n := range parser.Model.Children { // the short forms are hidden from help alone
		n.Hidden = false
	}
	command, err := kongplete.Command(parser, kongplete.WithPredictors(predictors()))
	if err != nil {
		parser.Errorf("%v", err)
		return true
	}
	completer := complete.New(parser.Model.Name, command)
	sorted := &sortedLines{w: parser.Stdout}
	completer.Out = sorted
	completer.Complete()
	sorted.flush()
	return true
}

// predictors say what the values of options and arguments can be, by the name that their tag gives.
func predictors() map[string]complete.Predictor {
	devices := []string{collect.DeviceAuto, collect.DeviceCUDA, collect.DevicePhantom}
	for _, profile := range phantom.Profiles() {
		devices = append(devices, collect.DevicePhantom+":"+profile)
	}
	all := map[string]complete.Predictor{
		"run":     complete.PredictFunc(runs),
		"suite":   complete.PredictFunc(suites),
		"device":  complete.PredictSet(devices...),
		"profile": complete.PredictSet(phantom.Profiles()...),
	}
	for _, o := range experiments.Options() {
		if values := values(o.Name); values != nil {
			all[o.Name] = complete.PredictSet(values...)
		}
	}
	return all
}

// predicts reports whether the values of a built-in experiment's option are completed.
func predicts(option string) bool { return values(option) != nil }

// values are what an option of the built-in experiments can be, nil where that is no list.
func values(option string) (list []string) {
	switch option {
	case "method":
		for _, m := range experiments.Methods() {
			list = append(list, m.ID)
		}
		return list
	case "preset":
		for _, p := range experiments.Presets() {
			list = append(list, p.Name)
		}
		return list
	}
	for _, o := range experiments.Options() {
		if o.Name == option && o.Type == experiments.Enum {
			return o.Choices
		}
	}
	return nil
}

// runs are the names and ids of the runs, and the names of the suites, in the store of the line that is typed.
func runs(line complete.Args) (words []string) {
	dir := cmp.Or(os.Getenv("DPSIGHT_STORE"), "runs")
	for i, word := range line.All {
		if value, is := strings.CutPrefix(word, "--store="); is {
			dir = value
		} else if word == "--store" && i+1 < len(line.All) {
			dir = line.All[i+1]
		}
	}
	s := store.Open(dir)
	if list, _, err := s.Runs(); err == nil {
		for _, r := range list {
			words = append(words, r.Manifest.Name)
			if line.Last != "" { // ids are looked for by their beginning
				words = append(words, r.ID)
			}
		}
	}
	if list, _, err := s.Suites(); err == nil {
		for _, of := range list {
			words = append(words, of.Name)
		}
	}
	if folders, err := filepath.Glob(line.Last + "*"); err == nil && strings.Contains(line.Last, "/") {
		words = append(words, folders...)
	}
	return words
}

// suites are the built-in suites, and the files that may be others.
func suites(line complete.Args) []string {
	files, err := filepath.Glob(line.Last + "*.yaml")
	if err != nil {
		files = nil // the word is no pattern
	}
	return append(files, suite.Names()...)
}

// sortedLines collects lines and writes each once, in order: candidates come from maps.
type sortedLines struct {
	w     io.Writer
	lines []string
}

func (s *sortedLines) Write(b []byte) (int, error) {
	s.lines = append(s.lines, strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

func (s *sortedLines) flush() {
	slices.Sort(s.lines)
	for _, line := range slices.Compact(s.lines) {
		fmt.Fprintln(s.w, line)
	}
}
