package collect

import (
	"fmt"
	"strconv"

	"github.com/dpsight/dpsight/schemas"
	"github.com/dpsight/dpsight/schemas/units"
)

// The words that [Experiment.Steps] accepts besides a number of steps. "" means StepsAll.
const (
	// StepsAuto ends the script when the highest allocated and the highest reserved have not risen for three steps
	// after the first update, and either an evaluation was seen or a minute has passed. A script that announces its
	// number of steps (dpsight.plan) ends by itself.
	StepsAuto = "auto"
	StepsAll  = "all" // the script ends by itself
)

// agreementVariable is the variable that names the file in which the ranks of a run agree on their last step.
const agreementVariable = "DPSIGHT_AGREEMENT"

// CheckSteps returns an error unless steps is a number of steps or one of the words.
func CheckSteps(steps string) error {
	if steps == "" || steps == StepsAuto || steps == StepsAll {
		return nil
	}
	if n, err := strconv.Atoi(steps); err != nil || n < 1 {
		return &UsageError{fmt.Sprintf("--steps must be a number of steps, auto or all, not %q", steps),
			"--steps 5 ends the script after five; --steps all lets it run to its end"}
	}
	return nil
}

// CheckGPUs returns an error for a number of GPUs that a phantom machine cannot have. 0 means that the user gave no
// number.
func CheckGPUs(n int, w *int) error {
	switch {
	case n == 0:
		return nil
	case n < 1 || n > maxPerNode:
		return &UsageError{fmt.Sprintf("--gpus must be 1 to %d, not %d", maxPerNode, n), "as in --gpus 2"}
	case w != nil:
		return &UsageError{"--gpus does not go with --world-size", "use --gpus-per-node for the GPUs of each machine"}
	}
	return nil
}

// endedReason says why a prediction ended a script.
func endedReason(e *schemas.Ended) string {
	text := "ended after step " + strconv.FormatInt(e.Step, 10) + " because "
	flat := "neither the highest allocated nor the highest reserved had risen for " +
		units.Plural(int(e.Flat), "step", "steps")
	switch e.Why {
	case schemas.EndedAsked:
		return text + "--steps asks for no more"
	case schemas.EndedEvaluated:
		return text + flat + " and an evaluation was seen"
	}
	return text + flat + " and no evaluation began within " + strconv.FormatInt(e.Seconds, 10) + " s"
}
