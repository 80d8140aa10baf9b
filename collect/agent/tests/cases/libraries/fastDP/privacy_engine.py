import types

from fastDP import autograd_grad_sample


class PrivacyEngine:
    def __init__(self, module, layers):
        self.noise_multiplier, self.max_grad_norm, self.loss_reduction = 1.5, 0.5, "mean"
        self.named_params = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        autograd_grad_sample.add_hooks(module, layers)

    def attach(self, optimizer):
        step = optimizer.step

        def dp_step(own):
            own.zero_grad()
            self._create_noisy_clipped_gradient()
            step()

        optimizer.step = types.MethodType(dp_step, optimizer)

    def _create_noisy_clipped_gradient(self):
        for _, p in self.named_params:
            p.grad = p.private_grad
            del p.private_grad
            p.grad /= 16
