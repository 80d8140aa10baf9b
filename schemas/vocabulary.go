package schemas

// Evidence says how it is known that an owner holds a block.
type Evidence = string

const (
	Tagged   Evidence = "tagged"   // a tag of the agent names the block
	Lifetime Evidence = "lifetime" // a rule about when the block was born and died
	ByStack  Evidence = "stack"    // a rule about the stack that asked for the block, and about when it was born and died
	ByPhase  Evidence = "phase"    // only the phase in which the block was born
)

// The phases of a run; a script's own phases (dpsight.phase) may have any other name.
const (
	PhaseSetupData      = "setup.data"
	PhaseSetupModel     = "setup.model"
	PhaseSetupWrap      = "setup.wrap"
	PhaseSetupOptimizer = "setup.optimizer"
	PhaseSetupPrivacy   = "setup.privacy"
	PhaseForward        = "forward"
	PhaseBackward       = "backward"
	PhaseBackwardNorm   = "backward.norm"
	PhaseBackwardGrad   = "backward.grad"
	PhaseClip           = "clip"
	PhaseAccumulate     = "accumulate"
	PhaseNoise          = "noise"
	PhaseRecompute      = "recompute"
	PhaseOptimizer      = "optimizer"
	PhaseZeroGrad       = "zero_grad"
	PhaseEval           = "eval"
	PhaseBetween        = "between"
)

// MethodNormOnly is the method that computes per-sample norms and does nothing with them.
const MethodNormOnly = "norm_only"

// The statuses of a run: the ways in which it can end, and that it has not ended yet.
const (
	// StatusRunning: the collector is still recording the run. No document has this status, since a collector that is
	// killed could not replace it.
	StatusRunning = "running"
	StatusOK      = "ok"
	StatusFailed  = "failed"  // the command ended with a non-zero exit code
	StatusOOM     = "oom"     // the command died of a CUDA out-of-memory error
	StatusTimeout = "timeout" // the run reached its own time limit
	StatusKilled  = "killed"  // a signal ended the command
	// StatusPartial: the collector itself died, and the run was recovered from the journal. Analyses also use this
	// status if an agent could no longer record and the command went on.
	StatusPartial = "partial"
)

// EndedByItself reports whether a run of the given status ended on its own. The peak of a run that was stopped covers
// only the part that the run reached, so it is not compared with the peaks of equal runs.
func EndedByItself(status string) bool {
	return status == StatusOK || status == StatusFailed || status == StatusOOM
}

// SharedByModules is the name that documents use as the module of library workspaces; see [memory.IsSharedByModules].
const SharedByModules = "shared by all modules"

// The values of [Manifest.Source]: how the figures of a run were obtained.
const (
	Measured  = "measured"  // the run was on a real GPU
	Predicted = "predicted" // the run was on a phantom GPU: it has bytes and no times
	Imported  = "imported"  // the run was imported from a foreign file
)

// The verdicts of conservation.
const (
	// Exact: replayed bytes equal the allocator's own counters at each checkpoint, and no event is missing.
	Exact = "exact"
	// Bounded: no event is missing, but the sizes of some blocks from before recording are known only within bounds.
	Bounded      = "bounded"
	Lossy        = "lossy"        // events are missing, or replay and allocator disagree
	Unverifiable = "unverifiable" // there is nothing to check replay against
)
