"""A message-passing network on graphs of many sizes: gathers, index_add, scatter_reduce, validation every epoch."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, LAYERS, GRAPHS, EPOCHS, STEPS = 256, 5, 512, 2, 4


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Sequential(nn.Linear(3 * WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU())
        self.gate, self.update = nn.Linear(WIDTH, 1), nn.GRUCell(WIDTH, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH)

    def forward(self, h: torch.Tensor, bonds: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        m = self.message(torch.cat([h[source], h[target], bonds], 1))
        m = m * torch.sigmoid(self.gate(m))
        total = torch.zeros_like(h).index_add_(0, target, m)
        return self.norm(self.update(total, h))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.atoms, self.bonds = nn.Embedding(32, WIDTH), nn.Embedding(6, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.SiLU(), nn.Dropout(0.2), nn.Linear(WIDTH, 1))

    def forward(self, atoms, bonds, source, target, owner, graphs: int) -> torch.Tensor:
        h, e = self.atoms(atoms), self.bonds(bonds)
        for layer in self.layers:
            h = h + layer(h, e, source, target)
        at = owner[:, None].expand_as(h)
        most = torch.full((graphs, WIDTH), -1e9, device=h.device).scatter_reduce(0, at, h, "amax")
        mean = torch.zeros(graphs, WIDTH, device=h.device).scatter_reduce(0, at, h, "mean", include_self=False)
        return self.head(torch.cat([most, mean], 1)).squeeze(1)


def batch(graphs: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    sizes = torch.randint(10, 60, (graphs,))
    starts, owner = sizes.cumsum(0) - sizes, torch.arange(graphs).repeat_interleave(sizes)
    edges = owner.repeat_interleave(torch.randint(1, 5, (len(owner),)))
    source = starts[edges] + (torch.rand(len(edges)) * sizes[edges]).long()
    target = starts[edges] + (torch.rand(len(edges)) * sizes[edges]).long()
    source, target = torch.cat([source, target]), torch.cat([target, source])
    atoms, bonds = torch.randint(0, 32, (len(owner),)), torch.randint(0, 6, (len(edges),)).repeat(2)
    return [z.cuda() for z in (atoms, bonds, source, target, owner)], torch.randn(graphs).cuda()


torch.manual_seed(105)
net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, amsgrad=True)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
for epoch in range(EPOCHS):
    net.train()
    for _ in range(STEPS):
        graph, y = batch(GRAPHS)
        loss = F.smooth_l1_loss(net(*graph, GRAPHS), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        graph, y = batch(GRAPHS // 2)
        error = F.l1_loss(net(*graph, GRAPHS // 2), y).item()
    schedule.step(error)
    print(f"epoch {epoch}: loss {loss.item():.3f}, error {error:.3f}")
