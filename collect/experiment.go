package collect

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// An Experiment is what to run and how to record it.
type Experiment struct {
	Store string // folder of runs; made where absent
	Name  string // name of the run; "" takes the script's name

	// Command is the user's. Empty runs the built-in experiment that Params (from experiments.Resolve) describe.
	Command []string
	Params  map[string]any
	Dir     string   // working folder; "" is the current one
	Environ []string // environment of the experiment, as from os.Environ; nil is this process's

	Bare        bool          // counters and timers only
	Warmup      *int          // steps before timed ones; nil leaves it to the agent
	RecordSteps *int          // how many steps have events, from the first; nil leaves it to the agent
	WindowSteps *int          // steps of a later window, 0 = no later windows; nil leaves it to the agent
	Stacks      bool          // Python stacks of allocations, in set-up and the first StackSteps steps
	StackSteps  *int          // nil leaves it to the agent
	NoLines     bool          // the lines of the script are not followed
	LikeAGPU    bool          // a phantom GPU has bare steps, as a GPU has, and is looked at between steps alone
	Timeout     time.Duration // 0 = none
	Grace       time.Duration // between TERM and KILL; 0 is DefaultGrace
	Cooldown    time.Duration // a pause after the device was found free

	// Machine is where the experiment runs; nil opens Device for this run only. A suite opens one for all its runs,
	// so that the device's idle level is known from run to run.
	Machine        *Machine
	Device         string        // auto ("" too), cuda, phantom, phantom:PROFILE
	SampleInterval time.Duration // time between two NVML readings; 0 is DefaultSampleInterval
	Python         string        // interpreter (--python); of a user's command only its check
	World          *World        // play ranks of a script that torchrun would start; nil = run the command alone
	Suite          *schemas.SuiteRef
	Placements     []schemas.Placement // earlier runs of the same experiment that placed segments otherwise
	// devices of a phantom machine; 0 = one, or one for each rank that a launcher starts
	GPUs      int
	Decisions []schemas.Decision // reads of unknown values that get the other answer
	Steps     string             // after which step a prediction ends the script; see [CheckSteps]
	Garbage   string             // when Python's garbage is collected, as schemas.GarbageNever; "" = by Python
	Version   string             // version of dpsight

	Stdin          *os.File  // nil is no input; a terminal without Terminal counts as nil
	Stdout, Stderr io.Writer // where the output is shown, in addition to the logs; may be nil
	Progress       func(Progress)
	// Terminal is where the output is shown, if that is a terminal and only this experiment uses it. The experiment
	// then gets a terminal of its own, of the same size, and input from Stdin is passed on. May be nil.
	Terminal *os.File

	// Signals are passed on to the experiment; the second one kills it. See [Interrupts]. May be nil.
	Signals <-chan os.Signal
}

// Check refuses values that mean nothing.
func (e *Experiment) Check() error {
	below := func(n *int, least int) bool { return n != nil && *n < least }
	switch {
	case e.Timeout < 0:
		return &UsageError{fmt.Sprintf("--timeout must be positive, not %s", e.Timeout),
			"without --timeout an experiment may take as long as it likes"}
	case below(e.RecordSteps, 1):
		return &UsageError{fmt.Sprintf("--record-steps must be 1 or more, not %d", *e.RecordSteps),
			"--bare records no events at all"}
	case below(e.WindowSteps, 0):
		return &UsageError{fmt.Sprintf("--window-steps must be 0 or more, not %d", *e.WindowSteps),
			"0 records the first steps only"}
	case below(e.StackSteps, 1):
		return &UsageError{fmt.Sprintf("--stack-steps must be 1 or more, not %d", *e.StackSteps),
			"without --stacks there are none at all"}
	}
	return nil
}

// plannedSteps returns how many steps the experiment will have, 0 if the experiment does not say. A built-in experiment
// has two steps for each timed step, a bare and an instrumented one.
func (e *Experiment) plannedSteps() int64 {
	if n, err := strconv.ParseInt(e.Steps, 10, 64); err == nil {
		return n
	}
	timed, warmup := wholeNumber(e.Params["num_iter"]), wholeNumber(e.Params["warmup_iter"])
	switch {
	case len(e.Command) > 0 || timed == 0:
		return 0
	case e.Bare:
		return warmup + timed
	}
	return warmup + 2*timed
}

// wholeNumber returns an integer parameter, as YAML or the table of options gives it, else 0.
func wholeNumber(value any) int64 {
	switch n := value.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// DefaultGrace is how long an experiment may take to end by itself after TERM.
const DefaultGrace = 10 * time.Second

// A Result is a finished run.
type Result struct {
	Manifest *schemas.Manifest
	Dir      string // the run's folder
	// Garbage is what only Python's garbage collector frees, on the phantom GPU; nil elsewhere.
	Garbage *schemas.Garbage
	// Suspects are the reads of unknown values that may have made a predicted run fail, the likeliest first.
	Suspects []string
	// Interrupted is set if a signal or the context ended the run. The caller should not start further runs.
	Interrupted bool
}
