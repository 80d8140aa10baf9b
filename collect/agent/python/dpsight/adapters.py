"""Adapters describe libraries that train with differential privacy. Each adapter lists a library's functions by their
purpose, and the attributes of layers and parameters by their contents. hooks/private_training.py hooks these functions,
and taggers/per_sample.py tags the contents of the attributes. To support another library, add an adapter here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsight import kinds


class Does(enum.Enum):
    """What a function of a library does. The brackets in each comment list the function's arguments, for a method
    without self."""

    KEEPS_INPUTS = "keeps inputs"  # (layer, …) It is a forward hook that keeps inputs in the layer's attributes.
    TAKES_NORMS = "takes norms"  # (layer, …) It computes norms, per-sample gradients or sums, and may let inputs go.
    RUNS_BACKWARD_TWICE = "runs backward twice"  # () It runs backward once for norms, once for the clipped sum.
    STEPS = "steps"  # () It is an optimizer's step, which may call another optimizer's step.
    CLEARS = "clears"  # () It clears gradients.
    CLIPS = "clip"  # () "clip", "accumulate" and "noise" are phases. An optimizer or an engine runs them.
    ACCUMULATES = "accumulate"
    ADDS_NOISE = "noise"
    ASKS_FOR_SAMPLES = "asks for samples"  # (parameter) Clipping calls it for each parameter in turn.
    STORES_SAMPLES = "stores samples"  # (param=, grad_sample=) It copies per-sample gradients to the parameter.
    MAKES_NOISE = "makes noise"  # () It returns the noise for one parameter.


@dataclass(frozen=True)
class Classes:
    """Classes of one kind: the classes with one of these names, and all their subclasses, also in other libraries."""

    names: tuple[str, ...]
    methods: Mapping[str, Does]
    # Making an object of this kind sets up privacy. The classes between this class and the object's are then hooked.
    sets_up: bool = False
    parameters: str = ""  # name of the attribute that lists an object's parameters, with or without names
    facts: Mapping[str, str] = field(default_factory=dict)  # attributes that state facts about privacy


@dataclass(frozen=True)
class Adapter:
    """A library. Each of its modules is hooked right after its import, before other modules import functions from it by
    name."""

    name: str
    modules: tuple[str, ...]
    classes: tuple[Classes, ...] = ()
    functions: Mapping[str, Does] = field(default_factory=dict)
    layers: Mapping[str, int] = field(default_factory=dict)  # attributes of layers, with the kinds of their tags
    parameters: Mapping[str, int] = field(default_factory=dict)  # attributes of parameters, with kinds of tags


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

# fastDP has book-keeping and bias-only methods. Hooks keep the input and the output gradient of each layer until the
# last layer's hook clips all layers. In evaluation each layer keeps its last input. The noise is added to the clipped
# sum.
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

# private-transformers has an engine that runs backward itself, in the optimizer's step.
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
# Attributes of parameters in all libraries.
PARAMETERS: dict[str, int] = {name: kind for adapter in ADAPTERS for name, kind in adapter.parameters.items()}
LAYERS: dict[str, int] = {name: kind for adapter in ADAPTERS for name, kind in adapter.layers.items()}
