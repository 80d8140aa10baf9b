package collect

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dpsight/dpsight/schemas"
)

// childEnv returns the experiment's environment, without the variables that the phantom GPU adds.
func childEnv(base []string, e *Experiment, runID, spoolDir string, pythonPath []string, plugin string,
	predicted bool) []string {
	set := map[string]string{
		"DPSIGHT_SPOOL":  spoolDir,
		"DPSIGHT_MODE":   "full",
		"DPSIGHT_SOURCE": schemas.Measured,
		runIDVariable:    runID,
		"PYTHONPATH":     strings.Join(pythonPath, string(os.PathListSeparator)),
	}
	if e.Bare {
		set["DPSIGHT_MODE"] = "bare"
	}
	if predicted {
		set["DPSIGHT_SOURCE"] = schemas.Predicted
	}
	if e.Warmup != nil {
		set["DPSIGHT_WARMUP"] = strconv.Itoa(*e.Warmup)
	}
	if e.RecordSteps != nil {
		set["DPSIGHT_RECORD_STEPS"] = strconv.Itoa(*e.RecordSteps)
	}
	if e.WindowSteps != nil {
		set["DPSIGHT_WINDOW_STEPS"] = strconv.Itoa(*e.WindowSteps)
	}
	if e.Stacks {
		set["DPSIGHT_STACKS"] = "python"
		if e.StackSteps != nil {
			set["DPSIGHT_STACK_STEPS"] = strconv.Itoa(*e.StackSteps)
		}
	}
	if e.NoLines {
		set["DPSIGHT_LINES"] = "none"
	}
	if e.LikeAGPU {
		set["DPSIGHT_LIKE_A_GPU"] = "1"
	}
	if predicted && e.Steps != "" && e.Steps != StepsAll {
		set["DPSIGHT_STEPS"] = e.Steps
	}
	if e.World != nil {
		set["DPSIGHT_RANKS"] = strconv.Itoa(len(e.World.Ranks))
	}
	if e.Garbage != "" {
		set["DPSIGHT_GARBAGE"] = e.Garbage
	}
	if plugin != "" {
		set["DPSIGHT_PLUGIN"] = plugin
	}
	var env []string
	buffered := false
	for _, entry := range base {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name == "PYTHONPATH":
			// An empty component would mean the working folder.
			for _, p := range filepath.SplitList(value) {
				if p != "" {
					set[name] += string(os.PathListSeparator) + p
				}
			}
			continue
		// The variable belongs to another run, in which this run was started.
		case strings.HasPrefix(name, "DPSIGHT_") && name != pythonVariable:
			continue
		case name == "PYTHONUNBUFFERED":
			buffered = true
		}
		env = append(env, entry)
	}
	if !buffered {
		// Python buffers output into a pipe: the user would see nothing for minutes, and a SIGKILL would lose it.
		set["PYTHONUNBUFFERED"] = "1"
	}
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		env = append(env, name+"="+set[name])
	}
	return env
}
