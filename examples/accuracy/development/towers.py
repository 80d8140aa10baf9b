"""Two towers trained against each other: fp16 autocast with a gradient scaler, a learnt temperature, NAdam."""

import torch
from torch import nn
from torch.nn import functional as F

BATCH, STEPS = 512, 6


def convolutional() -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in ((3, 64), (64, 128), (128, 256)):
        layers += [nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 256))


class Text(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20000, 256, padding_idx=0)
        layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        padding = ids == 0
        hidden = self.encoder(self.embedding(ids), src_key_padding_mask=padding)
        return hidden.masked_fill(padding[..., None], 0).sum(1) / (~padding).sum(1, keepdim=True)


torch.manual_seed(8)
image, text = convolutional().cuda(), Text().cuda()
scale = nn.Parameter(torch.tensor(2.66, device="cuda"))
parameters = [*image.parameters(), *text.parameters(), scale]
optimizer = torch.optim.NAdam(parameters, lr=5e-4)
scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, growth_interval=2)
for step in range(STEPS):
    ids = torch.randint(1, 20000, (BATCH, 64))
    ids[:, 40:] = 0
    pictures, ids = torch.rand(BATCH, 3, 64, 64).cuda(), ids.cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        a, b = F.normalize(image(pictures), dim=1), F.normalize(text(ids), dim=1)
        logits = scale.exp() * a @ b.T
        target = torch.arange(BATCH, device="cuda")
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(parameters, 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(f"step {step}: loss {loss.item():.3f}, scale {scaler.get_scale():.0f}")
