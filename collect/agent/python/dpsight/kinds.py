"""The numbers of the journal's format: kinds and flags of marks, kinds of tags, types of frames."""

# Kinds of marks. Odd numbers up to 27 open a span that the next number closes.
FORWARD_BEGIN = 1
FORWARD_END = 2
BACKWARD_BEGIN = 3
BACKWARD_END = 4
OPTIMIZER_BEGIN = 5
OPTIMIZER_END = 6
ZERO_GRAD_BEGIN = 7
ZERO_GRAD_END = 8
RECOMPUTE_BEGIN = 9
RECOMPUTE_END = 10
DP_STEP_BEGIN = 11
DP_STEP_END = 12
DP_BACKWARD_BEGIN = 13
DP_BACKWARD_END = 14
COMPILED_BEGIN = 15
COMPILED_END = 16
SCALER_BEGIN = 17
SCALER_END = 18
MODULE_BEGIN = 19
MODULE_END = 20
MODULE_BACKWARD_BEGIN = 21
MODULE_BACKWARD_END = 22
PHASE_BEGIN = 23
PHASE_END = 24
SAMPLER_BEGIN = 25
SAMPLER_END = 26
DRAIN_BEGIN = 27
DRAIN_END = 28
STEP_END = 40
USER_STEP = 41
USER_MARK = 42
TAGS = 43
ENGINE = 44
MODE = 45
START = 46
EXIT = 47
EXCEPTION = 48
OOM = 49
FORKED = 50
CUDA_READY = 51
TIMED_OUT = 52
HISTORY_RESET = 53
STEP_BEGIN = 54
REDUCER = 55
RAISED = 56
UPDATED = 57
CASTS_DROPPED = 58
SURVEY = 59
HOLDERS = 60

# Flags of forward marks.
GRAD = 1 << 0
TRAINING = 1 << 1
INFERENCE = 1 << 2
IN_BACKWARD = 1 << 3  # marks of optimizers and updates have it too
DIFFERENTIABLE = 1 << 4
GRAPH_MODULE = 1 << 5
HOST = 1 << 6
REPAIRED = 1 << 7

# Flags of backward marks.
KEEP_GRAPH = 1 << 0
CREATE_GRAPH = 1 << 1
ACCUMULATE = 1 << 2
NESTED_RUN = 1 << 3
IN_FORWARD = 1 << 4
FUNCTORCH = 1 << 5

# Flags of optimizer and DP step marks.
NESTED = 1 << 0
SKIPPED = 1 << 1
INITIALIZES = 1 << 2  # torch itself makes a step with zero gradients, to create the optimizer's state

# Flag of marks of updates: the step ended with the update.
ENDS = 1 << 0

# Flag of OOM marks: torch may recover from the failure. If it does not, a RAISED mark follows.
NOTED = 1 << 0

# Flag of phase marks.
SETUP = 1 << 0

# Flags of mode marks.
INSTRUMENTED = 1 << 0
WARMUP = 1 << 1
RECORDING = 1 << 2
UNPHASED = 1 << 3
LINES = 1 << 4

# Kinds of tags.
PARAMETER = 1
BUFFER = 2
GRADIENT = 3
OPTIMIZER_STATE = 4
SAVED_TENSOR = 5
HOOK_ACTIVATION = 6
GRAD_SAMPLE = 7
NORM_SAMPLE = 8
SUMMED_GRADIENT = 9
NOISE = 10
STORED_BACKPROP = 11
INPUT = 12
OUTPUT = 13
USER = 14
CLIP_TEMPORARY = 15
HELD = 16

# Data types by number, from 1, under torch's names. Append new ones at the end.
DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    "complex32",
    "uint16",
    "uint32",
    "uint64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn_x2",
)

# Types of frames.
FRAME_PROCESS = 1
FRAME_ENVIRONMENT = 2
FRAME_NAMES = 3
FRAME_MODULES = 4
FRAME_TAGS = 5
FRAME_ALLOCATOR = 6
FRAME_CHECKPOINT = 7
FRAME_TIMES = 8
FRAME_CONFIG = 9
FRAME_METRIC = 10
FRAME_PRIVACY = 11
FRAME_EXCEPTION = 12
FRAME_OOM = 13
FRAME_END = 14
FRAME_PLAN = 15
FRAME_DEVICES = 16
FRAME_PREDICTION = 17
FRAME_CODE = 18
FRAME_FAILURE = 19
FRAME_LINES = 20
FRAME_HOLDERS = 21
FRAME_HOST = 22
