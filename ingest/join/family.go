package join

import "github.com/dpsight/dpsight/schemas"

// family groups the phases that the rules treat alike.
type family uint8

const (
	otherFamily family = iota
	forwardFamily
	evalFamily
	recomputeFamily
	backwardFamily
	clipFamily
	updateFamily
	setupDataFamily
	setupModelFamily
	setupOptimizerFamily
)

var families = map[string]family{
	schemas.PhaseForward:        forwardFamily,
	schemas.PhaseEval:           evalFamily,
	schemas.PhaseRecompute:      recomputeFamily,
	schemas.PhaseBackward:       backwardFamily,
	schemas.PhaseBackwardNorm:   backwardFamily,
	schemas.PhaseBackwardGrad:   backwardFamily,
	schemas.PhaseClip:           clipFamily,
	schemas.PhaseAccumulate:     clipFamily,
	schemas.PhaseNoise:          updateFamily,
	schemas.PhaseOptimizer:      updateFamily,
	schemas.PhaseSetupData:      setupDataFamily,
	schemas.PhaseSetupModel:     setupModelFamily,
	schemas.PhaseSetupOptimizer: setupOptimizerFamily,
}

// recorded returns the family that the marks of any step show. Only instrumented steps mark recompute; in bare steps
// recompute is a part of backward.
func (f family) recorded() family {
	if f == recomputeFamily {
		return backwardFamily
	}
	return f
}
