"""Opacus: private.py DEVICE hooks|functorch|ew|ghost|fgc [bmm]. Four batches of 16; with bmm in physical ones of 8."""

import sys
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
from opacus import PrivacyEngine  # noqa: E402
from opacus.grad_sample import GradSampleModuleFastGradientClipping  # noqa: E402
from opacus.optimizers import DPOptimizerFastGradientClipping  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping  # noqa: E402

device, mode = sys.argv[1], sys.argv[2]
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 256), nn.Linear(256, 5)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(self.norm(x))).mean(1))


model, criterion = Net().to(device), nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(64, 7, 64), torch.randint(0, 5, (64,))), batch_size=16)
engine = PrivacyEngine(accountant="rdp")
if mode == "fgc":
    model = GradSampleModuleFastGradientClipping(model, max_grad_norm=1.0, use_ghost_clipping=False)
    optimizer = DPOptimizerFastGradientClipping(
        optimizer, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=16
    )
    criterion = DPLossFastGradientClipping(model, optimizer, criterion, "mean")
else:
    made = engine.make_private(
        module=model,
        optimizer=optimizer,
        criterion=criterion,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    model, optimizer, loader = made[0], made[1], made[-1]
    criterion = made[2] if mode == "ghost" else criterion


def train(batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss = criterion(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        if device == "cuda":
            print("peak", torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated())


if "bmm" in sys.argv:
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as physical:
        train(physical)
else:
    train(loader)
if mode != "fgc":
    engine.get_epsilon(1e-5)
if device == "cuda":
    from taken import taken

    taken()
