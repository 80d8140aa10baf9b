package grammar

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/posener/complete"

	"github.com/dpsight/dpsight/analyze/grouping"
	"github.com/dpsight/dpsight/collect"
	"github.com/dpsight/dpsight/collect/experiments"
	"github.com/dpsight/dpsight/collect/phantom"
	"github.com/dpsight/dpsight/collect/suite"
	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/store"
)

// predictors returns the functions that complete options and arguments, by the name in the option's tag.
func predictors() map[string]complete.Predictor {
	devices := []string{collect.DeviceAuto, collect.DeviceCUDA, collect.DevicePhantom}
	for _, profile := range phantom.Profiles() {
		devices = append(devices, collect.DevicePhantom+":"+profile)
	}
	all := map[string]complete.Predictor{
		"run":     complete.PredictFunc(runs),
		"suite":   complete.PredictFunc(suites),
		"device":  complete.PredictSet(devices...),
		"profile": listOf(phantom.Profiles()),
		"by":      listOf(dimensions(func(grouping.Dimension) bool { return true })),
		"rows":    complete.PredictSet(dimensions(grouping.Dimension.NeedsModule)...),
		"moment":  complete.PredictFunc(moments),
	}
	for _, o := range experiments.Options() {
		if values := values(o.Name); values != nil {
			all[o.Name] = complete.PredictSet(values...)
		}
	}
	all["method"] = listOf(values("method")) // predict --vary accepts several methods
	return all
}

// predicts reports whether the shell completes the values of a built-in experiment's option.
func predicts(option string) bool { return values(option) != nil }

// values returns the possible values of a built-in experiment's option, or nil if the option has no list of values.
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

// listOf completes the last of several comma-separated values with the values that are not in the list yet.
func listOf(values []string) complete.Predictor {
	return complete.PredictFunc(func(line complete.Args) (words []string) {
		before := line.Last[:strings.LastIndex(line.Last, ",")+1]
		given := strings.Split(before, ",")
		for _, value := range values {
			if !slices.Contains(given, value) {
				words = append(words, before+value)
			}
		}
		return words
	})
}

func dimensions(which func(grouping.Dimension) bool) (words []string) {
	for _, d := range grouping.Dimensions {
		if which(d) {
			words = append(words, string(d))
		}
	}
	return words
}

// moments returns the completions of --at. After "phase=" these are the phases of the runs on the line, or of the
// newest run if the line names none.
func moments(line complete.Args) (words []string) {
	before, key := line.Last[:strings.LastIndex(line.Last, ",")+1], "phase="
	if !strings.HasPrefix(line.Last[len(before):], key) {
		if before == "" {
			words = []string{"peak", "oom", "oom=", "event="}
		}
		for _, next := range []string{"step=", key} {
			if !strings.Contains(before, next) {
				words = append(words, before+next)
			}
		}
		return words
	}
	for _, run := range namedRuns(line) {
		if in, err := store.Load(run, schemas.WantTimes); err == nil {
			for _, p := range in.Phases {
				words = append(words, before+key+p.Phase)
			}
		}
	}
	return words
}

// namedRuns returns the runs whose names or ids are on the line, or else the newest run.
func namedRuns(line complete.Args) []store.Run {
	list, _, err := storeOf(line).Runs()
	if err != nil || len(list) == 0 {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(list), func(r store.Run) bool {
		return !slices.Contains(line.Completed, r.Manifest.Name) && !slices.Contains(line.Completed, r.ID)
	})
	if len(named) == 0 {
		return list[len(list)-1:]
	}
	return named
}

// storeOf returns the store that the typed line names.
func storeOf(line complete.Args) *store.Store {
	dir := cmp.Or(os.Getenv("DPSIGHT_STORE"), "runs")
	for i, word := range line.All {
		if value, is := strings.CutPrefix(word, "--store="); is {
			dir = value
		} else if word == "--store" && i+1 < len(line.All) {
			dir = line.All[i+1]
		}
	}
	return store.Open(dir)
}

// runs returns the names and ids of the runs, and the names of the suites, in the store that the typed line names.
func runs(line complete.Args) (words []string) {
	s := storeOf(line)
	if list, _, err := s.Runs(); err == nil {
		for _, r := range list {
			words = append(words, r.Manifest.Name)
			if line.Last != "" { // completes an id from its beginning
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

// suites returns the names of the built-in suites, and the files that may be suites.
func suites(line complete.Args) []string {
	files, err := filepath.Glob(line.Last + "*.yaml")
	if err != nil {
		files = nil // the typed word is no valid pattern
	}
	return append(files, suite.Names()...)
}
