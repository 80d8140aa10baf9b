"""Trains three steps with subclasses of Opacus's hooks and optimizer: extended.py DEVICE. The overrides call the
methods that they override. The hooks keep activations and output gradients, and record themselves how they computed a
norm."""

import sys
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
from opacus.grad_sample import GradSampleHooksFastGradientClipping  # noqa: E402
from opacus.optimizers import DPOptimizerFastGradientClipping  # noqa: E402
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping  # noqa: E402


class Hooks(GradSampleHooksFastGradientClipping):
    def __init__(self, *args, **kwargs):
        self.norm_by = {}
        super().__init__(*args, **kwargs)

    def capture_activations_hook(self, module, inputs, output):
        return super().capture_activations_hook(module, inputs, output)

    def capture_backprops_hook(self, module, inputs, outputs, loss_reduction, batch_first):
        if self.hooks_enabled:
            kept = module.activations[-1]
            super().capture_backprops_hook(module, inputs, outputs, loss_reduction, batch_first)
            module.activations.append(kept)
            module.backprops = outputs[0].detach()
            self.norm_by[module] = "later" if module in self.norm_by else "first"


class Optimizer(DPOptimizerFastGradientClipping):
    def accumulate(self):
        super().accumulate()


device = sys.argv[1]
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 5)).to(device)
hooks = Hooks(model)
optimizer = Optimizer(
    torch.optim.SGD(model.parameters(), lr=0.1), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=16
)
criterion = DPLossFastGradientClipping(hooks, optimizer, nn.CrossEntropyLoss())
x, y = torch.randn(16, 64), torch.randint(0, 5, (16,))
for _ in range(3):
    optimizer.zero_grad()
    criterion(model(x.to(device)), y.to(device)).backward()
    optimizer.step()
    for layer in (model[0], model[2]):
        del layer.backprops
        layer.activations.clear()
