"""What is known of libraries that train with differential privacy: an adapter for each. It names the library's
functions by purpose, and the attributes of layers and parameters by contents. hooks/private_training.py hooks
the functions, taggers/per_sample.py tags the contents. Support for another library only needs another adapter
here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsight import kinds


class Does(enum.Enum):
    """What a function of a library does. A method's object comes before the arguments that are named here."""

    KEEPS_INPUTS = "keeps inputs"  # (layer, …) It is a forward hook, and keeps a layer's inputs in its attributes.
    TAKES_NORMS = "takes norms"  # (layer, …) It computes norms, per-sample gradients or sums, and may let inputs go.
    RUNS_BACKWARD_TWICE = "runs backward twice"  # () Once for the norms, and once for the sum of clipped gradients.
    STEPS = "steps"  # () It is an optimizer's step, with the step of another optimizer inside or not.
    CLEARS = "clears"  # () It clears gradients.
    CLIPS = "clip"  # () These three are phases of their own: an optimizer or an engine does so for its parameters.
    ACCUMULATES = "accumulate"
    ADDS_NOISE = "noise"
    ASKS_FOR_SAMPLES = "asks for samples"  # (parameter) Clipping takes the parameters in turn, and calls it for each.
    STORES_SAMPLES = "stores samples"  # (param=, grad_sample=) It copies per-sample gradients to the parameter.
    MAKES_NOISE = "makes noise"  # () For one parameter. It returns the noise.


@dataclass(frozen=True)
class Classes:
    """Classes of one kind: those with one of these names, and classes that extend them, also in other libraries."""

    names: tuple[str, ...]
    methods: Mapping[str, Does]
    # Making an object of this kind sets privacy up. Classes that others put between a class and its object are then
    # hooked.
    sets_up: bool = False
    parameters: str = ""  # an object's attribute that lists the parameters which it works on, with names or without
    facts: Mapping[str, str] = field(default_factory=dict)  # what an object says of privacy, by its attribute


@dataclass(frozen=True)
class Adapter:
    """A library. Its modules are hooked one by one as soon as each was imported, before others import its functions
    by name."""

    name: str
    modules: tuple[str, ...]
    classes: tuple[Classes, ...] = ()
    functions: Mapping[str, Does] = field(default_factory=dict)
    layers: Mapping[str, int] = field(default_factory=dict)  # attributes of layers: kinds of tags
    parameters: Mapping[str, int] = field(default_factory=dict)  # attributes of parameters


_PRIVACY = {
    "noise_multiplier": "noise_multiplier",
    "max_grad_norm": "max_grad_norm",
    "loss_reduction": "loss_reduction",
}

OPACUS = Adapter(
    name="opacus",
    modules=(
        *(
            f"opacus.optimizers.{module}"
            for module in (
                "optimizer",
                "adaclipoptimizer",
                "perlayeroptimizer",
                "ddpoptimizer",
                "ddp_perlayeroptimizer",
                "optimizer_fast_gradient_clipping",
                "ddpoptimizer_fast_gradient_clipping",
                "fsdpoptimizer_fast_gradient_clipping",
            )
        ),
        *(
            f"opacus.grad_sample.{module}"
            for module in (
                "gsm_base",
                "grad_sample_module",
                "grad_sample_module_fast_gradient_clipping",
                "grad_sample_module_fast_gradient_clipping_fsdp",
                "grad_sample_module_fast_gradient_clipping_tp",
            )
        ),
        "opacus.utils.fast_gradient_clipping_utils",
    ),
    classes=(
        Classes(
            names=("DPOptimizer",),
            methods={
                "clip_and_accumulate": Does.CLIPS,
                "accumulate": Does.ACCUMULATES,
                "add_noise": Does.ADDS_NOISE,
                "_get_flat_grad_sample": Does.ASKS_FOR_SAMPLES,
                "step": Does.STEPS,
                "zero_grad": Does.CLEARS,
            },
            sets_up=True,
            parameters="params",
            facts=_PRIVACY,
        ),
        Classes(
            names=("AbstractGradSampleHooks", "GradSampleModule"),
            methods={
                "capture_activations_hook": Does.KEEPS_INPUTS,
                "capture_backprops_hook": Does.TAKES_NORMS,
            },
            sets_up=True,
        ),
        Classes(names=("DPTensorFastGradientClipping",), methods={"backward": Does.RUNS_BACKWARD_TWICE}),
    ),
    functions={
        "create_or_accumulate_grad_sample": Does.STORES_SAMPLES,
        "_generate_noise": Does.MAKES_NOISE,
    },
    layers={"activations": kinds.HOOK_ACTIVATION, "backprops": kinds.STORED_BACKPROP},
    parameters={
        "grad_sample": kinds.GRAD_SAMPLE,
        "_current_grad_sample": kinds.GRAD_SAMPLE,
        "_norm_sample": kinds.NORM_SAMPLE,
        "summed_grad": kinds.SUMMED_GRADIENT,
    },
)

# fastDP, with its book-keeping and bias-only methods. Hooks keep a layer's input and output gradient until the last
# layer's hook clips all of them. In evaluation each layer keeps its last input. Noise comes with the clipped sum.
FASTDP = Adapter(
    name="fastDP",
    modules=("fastDP.autograd_grad_sample", "fastDP.autograd_grad_sample_dist", "fastDP.privacy_engine"),
    classes=(
        Classes(
            names=("PrivacyEngine",),
            methods={"_create_noisy_clipped_gradient": Does.ACCUMULATES},
            sets_up=True,
            parameters="named_params",
            facts=_PRIVACY,
        ),
    ),
    functions={
        "_capture_activations": Does.KEEPS_INPUTS,
        "_prepare_sample_grad_or_norm": Does.TAKES_NORMS,
        "_per_block_clip_grad": Does.TAKES_NORMS,
    },
    layers={"activations": kinds.HOOK_ACTIVATION, "backprops": kinds.STORED_BACKPROP},
    parameters={
        "grad_sample": kinds.GRAD_SAMPLE,
        "norm_sample": kinds.NORM_SAMPLE,
        "private_grad": kinds.SUMMED_GRADIENT,
    },
)

# private-transformers. Its engine runs backward itself, inside the optimizer's step.
PRIVATE_TRANSFORMERS = Adapter(
    name="private_transformers",
    modules=("private_transformers.autograd_grad_sample", "private_transformers.privacy_engine"),
    classes=(
        Classes(
            names=("PrivacyEngine",),
            methods={
                "_accumulate_summed_grad": Does.CLIPS,
                "_double_backward": Does.RUNS_BACKWARD_TWICE,
                "_ghost_virtual_step": Does.ACCUMULATES,
                "_create_noisy_clipped_gradient": Does.ADDS_NOISE,
                "zero_grad": Does.CLEARS,
            },
            sets_up=True,
            parameters="named_params",
            facts=_PRIVACY,
        ),
    ),
    functions={"_capture_activations": Does.KEEPS_INPUTS, "_capture_backprops": Does.TAKES_NORMS},
    layers={"activations": kinds.HOOK_ACTIVATION},
    parameters={
        "grad_sample": kinds.GRAD_SAMPLE,
        "norm_sample": kinds.NORM_SAMPLE,
        "summed_grad": kinds.SUMMED_GRADIENT,
    },
)

ADAPTERS = (OPACUS, FASTDP, PRIVATE_TRANSFORMERS)
# Of all libraries: an attribute of a parameter means what its name says, even in a script without a library.
PARAMETERS: dict[str, int] = {name: kind for adapter in ADAPTERS for name, kind in adapter.parameters.items()}
LAYERS: dict[str, int] = {name: kind for adapter in ADAPTERS for name, kind in adapter.layers.items()}
