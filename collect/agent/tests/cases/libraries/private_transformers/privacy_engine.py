import types

import torch

from private_transformers import autograd_grad_sample


class PrivacyEngine:
    def __init__(self, module, layers, clipping_mode):
        self.noise_multiplier, self.max_grad_norm, self.clipping_mode = 1.5, 0.5, clipping_mode
        self.named_params = list(module.named_parameters())
        autograd_grad_sample.ghost["norms"] = clipping_mode == "ghost"
        autograd_grad_sample.add_hooks(layers)

    def attach(self, optimizer):
        step = optimizer.step

        def dp_step(_own, loss):
            self.step(loss)
            step()

        optimizer.step = types.MethodType(dp_step, optimizer)
        optimizer.zero_grad = types.MethodType(lambda _own: self.zero_grad(), optimizer)

    @torch.no_grad()
    def step(self, loss):
        if self.clipping_mode == "ghost":
            self._ghost_virtual_step(loss)
        else:
            self._accumulate_summed_grad(loss)
        self._create_noisy_clipped_gradient()

    def zero_grad(self):
        for _, p in self.named_params:
            p.__dict__.pop("summed_grad", None)
            p.grad = None

    @torch.no_grad()
    def _accumulate_summed_grad(self, loss):
        with torch.enable_grad():
            loss.sum().backward()
        norms = torch.stack([p.grad_sample.flatten(1).norm(dim=1) for _, p in self.named_params]).norm(dim=0)
        factors = torch.clamp_max(self.max_grad_norm / norms, 1.0)
        for _, p in self.named_params:
            p.summed_grad = torch.einsum("b,b...->...", factors, p.grad_sample)
            del p.grad_sample
            p.grad = None

    @torch.no_grad()
    def _ghost_virtual_step(self, loss):
        self._double_backward(loss)
        for _, p in self.named_params:
            p.summed_grad = p.grad
            p.grad = None
            del p.norm_sample

    @torch.enable_grad()
    def _double_backward(self, loss):
        loss.sum().backward(retain_graph=True)
        for _, p in self.named_params:
            p.grad = None
        norms = torch.stack([p.norm_sample for _, p in self.named_params]).norm(dim=0)
        (torch.clamp_max(self.max_grad_norm / norms, 1.0) * loss).sum().backward()

    def _create_noisy_clipped_gradient(self):
        for _, p in self.named_params:
            p.grad = p.summed_grad
            p.grad += torch.normal(0, 1, size=p.shape, device=p.device)
