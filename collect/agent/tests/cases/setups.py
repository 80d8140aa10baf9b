"""Sets up a model and trains it: setups.py DEVICE [phases]. With phases, the script names a stage of its set-up
itself."""

import contextlib
import sys
import warnings

import dpsight
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
device = sys.argv[1]
torch.manual_seed(0)
own = dpsight.phase("mine") if "phases" in sys.argv else contextlib.nullcontext()


class Packed(nn.Linear):
    """Packs its weights again whenever it is moved, as recurrent nets do."""

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.packed = self.weight.detach() * 1
        return self


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = Packed(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.first(x))


class Broken(nn.Module):
    def _apply(self, fn, recurse=True):
        raise ValueError("stays where it is")


with own:
    model = Net().to(device).float()
try:
    Broken().to(device)
except ValueError:
    pass
optimizer = torch.optim.Adagrad(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(12, 5, 16)), batch_size=4)
with torch.no_grad():
    model(torch.randn(5, 4, 16, device=device))
for (x,) in loader:
    loss = model(x.to(device)).sum()
    nn.CrossEntropyLoss().to(device)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    DataLoader(TensorDataset(x))
print("class", type(model).to.__name__, nn.Module.to.__doc__ is not None)
