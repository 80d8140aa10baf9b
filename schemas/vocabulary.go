package schemas

// Evidence says how an ownership is known.
type Evidence = string

const (
	Tagged   Evidence = "tagged"   // a tag of the agent names the block
	Lifetime Evidence = "lifetime" // a rule on when the block was born and died
	ByStack  Evidence = "stack"    // the stack that asked for the block, and when it was born and died
	ByPhase  Evidence = "phase"    // only the phase that it was born in
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
	// the collector is at work; no document has it, since a collector that is killed could not take it back
	StatusRunning = "running"
	StatusOK      = "ok"
	StatusFailed  = "failed"  // the command ended with a non-zero exit code
	StatusOOM     = "oom"     // the command died of a CUDA out-of-memory error
	StatusTimeout = "timeout" // the run's own time limit
	StatusKilled  = "killed"  // a signal ended the command
	// the collector itself died, and the run was recovered from the journal; for analyses also where an agent could
	// record no more and the command went on
	StatusPartial = "partial"
)

// EndedByItself reports whether a run of the given status ended on its own. The peak of a run that was stopped covers
// only the part that the run reached, so the peak is not compared with equal runs.
func EndedByItself(status string) bool {
	return status == StatusOK || status == StatusFailed || status == StatusOOM
}

// SharedByModules is, in documents, the module of library workspaces: see [memory.IsSharedByModules].
const SharedByModules = "shared by all modules"

// How the bytes of a run came about.
const (
	Measured  = "measured"  // on a real GPU
	Predicted = "predicted" // on a phantom GPU: bytes, no times
	Imported  = "imported"  // from a foreign file
)

// The verdicts of conservation.
const (
	// replayed bytes equal the allocator's own at every checkpoint, and no event is missing
	Exact = "exact"
	// nothing is missing, but the sizes of some blocks from before recording are known within bounds only
	Bounded      = "bounded"
	Lossy        = "lossy"        // events are missing, or replay and allocator disagree
	Unverifiable = "unverifiable" // nothing to check against
)
