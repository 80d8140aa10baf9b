package spool

// A Kind says what a mark means. Up to [OpenKinds], a kind with an odd number opens a span, and the kind with the next
// number closes it.
type Kind uint8

// The kinds of marks. In the comments, a and b are the record's operands, and Bits are its flags.
const (
	// outermost module call. a: module id. Bits: [FlagGrad], [FlagTraining], [FlagInference], [FlagInBackward],
	// [FlagGraphModule], [FlagFake]
	ForwardBegin  Kind = 1
	ForwardEnd    Kind = 2 // a: module id. Bits: as above without [FlagFake], and [FlagDifferentiable], [FlagHost]
	BackwardBegin Kind = 3 // a run of the autograd engine. a: number of roots. Bits: [FlagKeepGraph] …
	BackwardEnd   Kind = 4
	// Optimizer.step. a: optimizer number (names: "optimizer N Class"). Bits: [FlagNested], [FlagInBackward]
	OptimizerBegin      Kind = 5
	OptimizerEnd        Kind = 6
	ZeroGradBegin       Kind = 7 // a: 0 optimizer, 1 module, 2 Opacus' optimizer
	ZeroGradEnd         Kind = 8
	RecomputeBegin      Kind = 9 // activation checkpointing. a: 0 non-reentrant, 1 reentrant
	RecomputeEnd        Kind = 10
	DPStepBegin         Kind = 11 // Opacus' DPOptimizer.step. a: optimizer number
	DPStepEnd           Kind = 12 // Bits: [FlagSkipped] for a physical batch that is no logical step
	DPBackwardBegin     Kind = 13 // the two-pass loss' backward
	DPBackwardEnd       Kind = 14
	CompiledBegin       Kind = 15 // a torch.compile'd callable that is no module. a: name id
	CompiledEnd         Kind = 16
	ScalerBegin         Kind = 17 // GradScaler. a: 0 step, 1 update
	ScalerEnd           Kind = 18
	ModuleBegin         Kind = 19 // inner module call, forward or recompute. a: module id
	ModuleEnd           Kind = 20
	ModuleBackwardBegin Kind = 21 // on the engine's thread. a: module id
	ModuleBackwardEnd   Kind = 22
	// a phase named by the script (dpsight.phase), or by the agent where Opacus names it (clip, accumulate, noise) or a
	// call sets something up. a: name id. Bits: [FlagSetup]
	PhaseBegin   Kind = 23
	PhaseEnd     Kind = 24
	SamplerBegin Kind = 25 // a DP hook computes norms or per-sample gradients. a: module id
	SamplerEnd   Kind = 26
	DrainBegin   Kind = 27 // a: drain number
	DrainEnd     Kind = 28

	// the agent's own end of a step, where it switches modes and drains. a: step number from 0
	StepEnd  Kind = 40
	UserStep Kind = 41 // dpsight.step(). a: samples + 1, or 0; b: tokens + 1, or 0
	UserMark Kind = 42 // dpsight.mark(). a: name id
	Tags     Kind = 43 // tags with this k are in the tag frames. a: how many
	Engine   Kind = 44 // first Python code on the engine's thread in a backward run. a: k of its BackwardBegin
	// the mode from this mark on. Bits: [FlagInstrumented], [FlagWarmup], [FlagRecording], [FlagUnphased], [FlagLines]
	Mode      Kind = 45
	Start     Kind = 46
	Exit      Kind = 47 // the interpreter ends
	Exception Kind = 48 // an uncaught exception. a: name id of its class
	OOM       Kind = 49 // a: requested bytes; b: bytes free on the device. Bits: [FlagNoted]
	// a child was forked; it records in a journal of its own, or, if CUDA was already in use, not at all
	Forked       Kind = 50
	CudaReady    Kind = 51 // CUDA is initialised; recording begins
	TimedOut     Kind = 52 // a CUDA event could not be read before the process ended
	HistoryReset Kind = 53 // the script itself called a function that resets counters or history. a: name id
	StepBegin    Kind = 54 // first mark of the next step after a drain. a: step number from 0
	Reducer      Kind = 55 // DDP's reducer makes its buckets. a: name id of what it makes; 0: the reducer is done
	// the error of a request that failed reached Python, where the script may catch it. a: k of its OOM mark
	Raised Kind = 56
	// Optimizer.step as a whole, in a step without phases. a: optimizer number; b: step number from 0, if it ended.
	// Bits: [FlagEnds], [FlagInBackward] (a backward run of a step without phases, inside which an optimizer
	// stepped)
	Updated Kind = 57
	// autocast empties its cache of casts. a: 1 = it begins, 0 = it is done
	CastsDropped Kind = 58
	// the agent has just tagged all reachable tensors that the script and its graphs hold. a: k of these tags, 0 = there
	// are none
	Survey Kind = 59
	// the agent has looked for the holders of blocks; a frame with this k has the result. a: number of blocks
	Holders Kind = 60
)

// OpenKinds is the last kind that belongs to a pair: an odd kind that opens a span, and an even kind that closes it.
const OpenKinds Kind = 28

// Opens reports whether k opens a span.
func (k Kind) Opens() bool { return k < OpenKinds && k%2 == 1 }

// Closes reports whether k closes a span.
func (k Kind) Closes() bool { return k > 0 && k <= OpenKinds && k%2 == 0 }

// Flags of forward marks.
const (
	FlagGrad           = 1 << 0
	FlagTraining       = 1 << 1
	FlagInference      = 1 << 2
	FlagInBackward     = 1 << 3 // inside backward; marks of optimizers and Updated have it for a step inside backward
	FlagDifferentiable = 1 << 4 // some output requires grad
	FlagGraphModule    = 1 << 5
	FlagFake           = 1 << 6 // in a call's first mark, in journals of older agents
	FlagHost           = 1 << 6 // in a call's last mark: the call had no tensor on the device
	// an end that the agent wrote because an exception left the call; on OptimizerEnd it also means that the step
	// counts as no update
	FlagRepaired = 1 << 7
)

// Flags of backward marks.
const (
	FlagKeepGraph   = 1 << 0
	FlagCreateGraph = 1 << 1
	FlagAccumulate  = 1 << 2
	FlagNestedRun   = 1 << 3 // the run is inside another run
	FlagInForward   = 1 << 4
	FlagFunctorch   = 1 << 5
)

// Flags of optimizer and DP step marks.
const (
	FlagNested  = 1 << 0 // the step is inside another optimizer's step
	FlagSkipped = 1 << 1 // DPStepEnd: gradients were accumulated, nothing was updated
	// OptimizerBegin and OptimizerEnd: torch itself steps with zero gradients, to make the state that it then loads
	FlagInitializes = 1 << 2
)

// FlagEnds is a flag of Updated marks: the step ended with this mark, as with a StepEnd.
const FlagEnds = 1 << 0

// FlagNoted is a flag of OOM marks: a convolution made the request. A Raised mark follows if the error reaches Python;
// otherwise torch recovers from the error. Without FlagNoted, the script gets the error, or the agent is too old to set
// the flag.
const FlagNoted = 1 << 0

// Flag of phase marks.
const FlagSetup = 1 << 0 // the agent's own phase, around a call that sets something up; in training it has no meaning

// Flags of Mode marks.
const (
	FlagInstrumented = 1 << 0
	FlagWarmup       = 1 << 1
	FlagRecording    = 1 << 2
	// models in training mode, backward and zero_grad are not marked, and CUDA events are recorded at the ends of steps
	// only
	FlagUnphased = 1 << 3
	FlagLines    = 1 << 4 // the lines of the script are followed; older agents never set it
)

var kindNames = map[Kind]string{
	ForwardBegin: "forward_begin", ForwardEnd: "forward_end", BackwardBegin: "backward_begin",
	BackwardEnd:    "backward_end",
	OptimizerBegin: "optimizer_begin", OptimizerEnd: "optimizer_end", ZeroGradBegin: "zero_grad_begin",
	ZeroGradEnd:    "zero_grad_end",
	RecomputeBegin: "recompute_begin", RecomputeEnd: "recompute_end", DPStepBegin: "dp_step_begin",
	DPStepEnd:       "dp_step_end",
	DPBackwardBegin: "dp_backward_begin", DPBackwardEnd: "dp_backward_end", CompiledBegin: "compiled_begin",
	CompiledEnd: "compiled_end",
	ScalerBegin: "scaler_begin", ScalerEnd: "scaler_end", ModuleBegin: "module_begin", ModuleEnd: "module_end",
	ModuleBackwardBegin: "module_backward_begin", ModuleBackwardEnd: "module_backward_end", PhaseBegin: "phase_begin",
	PhaseEnd:     "phase_end",
	SamplerBegin: "sampler_begin", SamplerEnd: "sampler_end", DrainBegin: "drain_begin", DrainEnd: "drain_end",
	StepEnd: "step_end", UserStep: "user_step", UserMark: "user_mark", Tags: "tags", Engine: "engine", Mode: "mode",
	Start: "start",
	Exit:  "exit", Exception: "exception", OOM: "oom", Forked: "forked", CudaReady: "cuda_ready", TimedOut: "timed_out",
	HistoryReset: "history_reset", StepBegin: "step_begin", Reducer: "reducer", Raised: "raised", Updated: "updated",
	CastsDropped: "casts_dropped", Survey: "survey", Holders: "holders",
}

func (k Kind) String() string {
	if n, ok := kindNames[k]; ok {
		return n
	}
	return "unknown"
}

// A TagKind says which kind of tensor the agent saw at an address. Ingest derives the category from it.
type TagKind uint8

// The kinds of tags.
const (
	TagParameter      TagKind = 1
	TagBuffer         TagKind = 2
	TagGradient       TagKind = 3 // p.grad
	TagOptimizerState TagKind = 4
	TagSavedTensor    TagKind = 5 // autograd holds the tensor for backward
	TagHookActivation TagKind = 6 // a DP hook holds the tensor for backward (module.activations)
	TagGradSample     TagKind = 7 // grad_sample and its staging copies
	TagNormSample     TagKind = 8
	TagSummedGradient TagKind = 9
	TagNoise          TagKind = 10
	TagStoredBackprop TagKind = 11
	TagInput          TagKind = 12 // argument of the outermost forward call
	TagOutput         TagKind = 13 // result of the outermost forward call, or a root of backward
	TagUser           TagKind = 14 // dpsight.tag(): the module field holds the name id of the category
	TagClipTemporary  TagKind = 15
	// between two steps the tensor is a plain attribute of a module or a parameter, or a global or in a closure of the
	// script
	TagHeld TagKind = 16
)

var tagKindNames = [...]string{"unknown", "parameter", "buffer", "gradient", "optimizer_state", "saved_tensor",
	"hook_activation",
	"grad_sample", "norm_sample", "summed_gradient", "noise", "stored_backprop", "input", "output", "user",
	"clip_temporary", "held"}

func (t TagKind) String() string {
	if int(t) < len(tagKindNames) {
		return tagKindNames[t]
	}
	return tagKindNames[0]
}
