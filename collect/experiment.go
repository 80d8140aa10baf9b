package collect

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/dpsight/dpsight/schemas"
)

// An Experiment says what is run and how it is recorded.
type Experiment struct {
	Store string // folder of runs; created if absent
	Name  string // name of the run; "" takes the script's name

	// Command is the user's command. If it is empty, the built-in experiment that Params describe (from
	// experiments.Resolve) runs.
	Command []string
	Params  map[string]any
	Dir     string   // working folder; "" means the current one
	Environ []string // environment of the experiment, as from os.Environ; nil means this process's

	Bare        bool          // records only counters and timers
	Warmup      *int          // steps before the timed ones; nil means the agent's default
	RecordSteps *int          // number of first steps with events; nil means the agent's default
	WindowSteps *int          // steps of each later window, 0 for no later windows; nil means the agent's default
	Stacks      bool          // records Python stacks of allocations, in set-up and the first StackSteps steps
	StackSteps  *int          // nil means the agent's default
	NoLines     bool          // does not follow the lines of the script
	LikeAGPU    bool          // makes a phantom GPU have bare steps like a GPU, and looks only between steps
	Timeout     time.Duration // time limit of the run; 0 = none
	Grace       time.Duration // between TERM and KILL; 0 means DefaultGrace
	Cooldown    time.Duration // pause after the device was found free

	// Machine is where the experiment runs. If it is nil, Device is opened for this run only. A suite opens one Machine
	// for all its runs, so that it learns the device's idle memory.
	Machine        *Machine
	Device         string        // auto (the default), cuda, phantom or phantom:PROFILE
	SampleInterval time.Duration // time between two NVML samples; 0 means DefaultSampleInterval
	Python         string        // interpreter (--python); for a user's command it is only checked
	World          *World        // ranks of a script to run as torchrun would; nil runs the command alone
	Suite          *schemas.SuiteRef
	Placements     []schemas.Placement // earlier runs of the same experiment with other placements of segments
	// GPUs is the number of devices of a phantom machine. 0 means one, or one for each rank that a launcher starts.
	GPUs      int
	Decisions []schemas.Decision // reads of unknown values that get the other answer
	Steps     string             // the step after which a prediction ends the script; see [CheckSteps]
	Garbage   string             // when garbage is collected, such as schemas.GarbageNever; "" leaves it to Python
	Version   string             // dpsight's version

	Stdin          *os.File  // nil means no input; a terminal counts as nil if Terminal is nil
	Stdout, Stderr io.Writer // where output is shown, in addition to the logs; may be nil
	Progress       func(Progress)
	// Terminal is the terminal on which output is shown, if only this experiment uses it. The experiment then gets its
	// own terminal of the same size, and input from Stdin is passed on. Terminal may be nil.
	Terminal *os.File

	// Signals are passed on to the experiment; the second one kills it. See [Interrupts]. Signals may be nil.
	Signals <-chan os.Signal
}

// Check refuses values that mean nothing.
func (e *Experiment) Check() error {
	below := func(n *int, least int) bool { return n != nil && *n < least }
	switch {
	case e.Timeout < 0:
		return &UsageError{fmt.Sprintf("--timeout must be positive, not %s", e.Timeout),
			"without --timeout, an experiment has no time limit"}
	case below(e.RecordSteps, 1):
		return &UsageError{fmt.Sprintf("--record-steps must be 1 or more, not %d", *e.RecordSteps),
			"--bare records no events at all"}
	case below(e.WindowSteps, 0):
		return &UsageError{fmt.Sprintf("--window-steps must be 0 or more, not %d", *e.WindowSteps),
			"0 records the first steps only"}
	case below(e.StackSteps, 1):
		return &UsageError{fmt.Sprintf("--stack-steps must be 1 or more, not %d", *e.StackSteps),
			"without --stacks, dpsight records no stacks"}
	}
	return nil
}

// plannedSteps returns the number of steps that the experiment will have, or 0 if it is not known. A built-in
// experiment has two steps for each timed step, a bare and an instrumented one.
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

// wholeNumber returns an integer parameter in the types of YAML or of the table of options, or 0 for other values.
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
	// Garbage says what only Python's garbage collector frees on the phantom GPU. Garbage is nil on a GPU.
	Garbage *schemas.Garbage
	// Suspects are the reads of unknown values that may have made a predicted run fail, the likeliest first.
	Suspects []string
	// Interrupted is true if a signal or the context ended the run. The caller should not start further runs.
	Interrupted bool
}
