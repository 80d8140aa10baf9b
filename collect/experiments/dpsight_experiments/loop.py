"""The training loop."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from dpsight_experiments import _agent
from dpsight_experiments.methods import Training
from dpsight_experiments.options import Options


def forever(loader: DataLoader) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields batches (inputs, targets), epoch after epoch."""
    while True:
        yield from loader


def train_step(
    training: Training, options: Options, inputs: Tensor, targets: Tensor, device: torch.device
) -> list[Tensor]:
    """Makes one optimizer step on a batch that is on the host.

    A batch larger than the physical batch size goes through forward and backward in parts. Returns each part's mean
    loss, still on the device, since reading a loss would make the host wait. With Poisson sampling a batch may be
    empty.
    """
    how = training.zero_grad if options.zero_grad == "default" else options.zero_grad
    if len(inputs) == 0:
        _step_of_noise(training, how)
        return []
    size = options.physical_batch_size
    parts = list(zip(inputs.split(size), targets.split(size), strict=True))
    losses = []
    for i, (x, y) in enumerate(parts):
        if training.private:
            # Like Opacus' BatchMemoryManager, this calls step() and zero_grad() after each part. Until the last part
            # these calls only add the part's clipped gradients.
            training.optimizer.signal_skip_step(do_skip=i + 1 < len(parts))
        if training.private or i == 0:
            zero_grad(training.optimizer, how)
        losses.append(_accumulate(training, options, x.to(device), y.to(device), weight=1 / len(parts)))
        if training.private or i + 1 == len(parts):
            training.optimizer.step()
    return losses


def _step_of_noise(training: Training, how: str) -> None:
    """Makes the step of a batch that Poisson sampling left empty: noise alone, as the accounting assumes.

    The model is not run. Opacus runs it on tensors without samples, with which its ghost norms of an embedding fail,
    and the result of that pass is known anyway. So this function does the part of DPOptimizer.step that follows
    clipping.
    """
    optimizer = training.optimizer
    zero_grad(optimizer, how)
    parameters = list(training.model.parameters())
    for p in parameters:
        p.summed_grad = torch.zeros_like(p)
        p.grad_sample = p.new_zeros((0, *p.shape))  # Opacus counts batches by this attribute
    optimizer.add_noise()
    optimizer.scale_grad()
    optimizer.step_hook(optimizer)
    for p in parameters:
        p.grad_sample = None
    optimizer.original_optimizer.step()


def _accumulate(training: Training, options: Options, x: Tensor, y: Tensor, weight: float) -> Tensor:
    """Makes forward and backward of one physical batch.

    _accumulate is a function so that inputs and loss are released before the optimizer steps. The logits have no name:
    if they were held to the end of the step, they would be part of the peak.
    """
    with torch.autocast(x.device.type, torch.bfloat16, enabled=options.precision == "bf16"):
        loss = training.loss(training.model(x), y)
    # Opacus itself divides by the logical batch size.
    scaled = loss if training.private or weight == 1 else loss * weight
    scaled.backward()
    return loss.detach()


def zero_grad(optimizer: torch.optim.Optimizer, how: str) -> None:
    """Calls zero_grad in the given way: with the optimizer's own default, or so that gradients are freed (none) or
    kept."""
    if how == "default":
        optimizer.zero_grad()
    else:
        optimizer.zero_grad(set_to_none=how == "none")


def train(training: Training, options: Options, device: torch.device) -> float:
    """Trains for the planned number of steps and returns the mean loss of the last one that had samples."""
    steps = _agent.plan(warmup=options.warmup_iter, timed=options.num_iter)
    batches = forever(training.loader)
    losses: list[Tensor] = []
    for step in range(1, steps + 1):
        inputs, targets = next(batches)
        losses = train_step(training, options, inputs, targets, device) or losses
        tokens = inputs.numel() if options.model == "transformer" else None
        _agent.step(samples=len(inputs), tokens=tokens)
        if step < steps and step % max(1, steps // 10) == 0:
            print(f"step {step}/{steps}", flush=True)
    # This is the only value that is read back: a read within the loop would change the timing of steps on a GPU.
    loss = sum(part.item() for part in losses) / len(losses) if losses else math.nan
    print(f"step {steps}/{steps} loss {loss:.4f}", flush=True)
    return loss
