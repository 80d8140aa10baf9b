"""Clipping methods that Opacus does not have. The methods use Opacus' hooks, optimizers, accountants and data loaders.

    private = clipping.make_private(
        method,                  # one of METHODS
        model=model, optimizer=optimizer, criterion=criterion, data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,       # with clipping="per_layer": a list, one norm a parameter, as Opacus takes it
        clipping="flat",         # "per_layer": bk and flash_bk only
        poisson_sampling=False,
        loss_reduction="mean",   # of the criterion
    )
    private.optimizer, private.criterion, private.data_loader, private.two_pass

The model gets hooks and keeps its identity, as with Opacus' wrap_model=False. The step is Opacus' step: zero_grad,
forward, loss.backward(), optimizer.step(), with signal_skip_step for physical batches smaller than the logical one; the
clipped sum is in p.summed_grad. For the two-pass methods private.criterion is Opacus' loss: it takes shape= for
sequences, and its backward() makes both passes. The other methods use the given criterion.

What the methods do:

- mixed_ghost (Bu et al. 2205.10683): two passes; a layer's norm by Gram matrices where 2T² < p·d, else by its
  per-sample gradients. Opacus computes both.
- flash: two passes; exact norms by tiles, see the tiles module for what is held and how the form is chosen.
- bk (Bu et al. 2210.00038): one pass that keeps each layer's activations and output gradients; from these the norms by
  Gram matrices and, when all norms are known, the clipped gradients. Gradients of parameters are not computed in
  backward: layers run with parameters that do not require grad.
- flash_bk: the same with the norms and the clipped gradients by tiles.
"""

from dpsight_experiments.clipping.engine import METHODS, TWO_PASS, ClippingEngine, Private, make_private

__all__ = ["METHODS", "TWO_PASS", "ClippingEngine", "Private", "make_private"]
