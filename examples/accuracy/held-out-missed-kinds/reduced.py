"""DDP on two nodes: a decoder of transformer blocks, fp16 reductions by a hook in every second backward pass."""

import os

import torch
from torch import distributed, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn import functional as F

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH, STEPS = 6000, 384, 6, 6, 256, 12, 6


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 8 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm_1(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.out(y)
        gate, up = self.up(self.norm_2(x)).chunk(2, 2)
        return x + self.down(F.silu(gate) * up)


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
distributed.init_process_group("nccl")
torch.manual_seed(404)
layers = [nn.Embedding(VOCABULARY, WIDTH), *(Block() for _ in range(LAYERS)), nn.RMSNorm(WIDTH)]
layers.append(nn.Linear(WIDTH, VOCABULARY))
model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers).cuda(), gradient_as_bucket_view=True)
model.register_comm_hook(None, fp16_compress_hook)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95))
torch.manual_seed(distributed.get_rank())
for _ in range(STEPS):
    for last in (False, True):
        ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1)).cuda()
        model.require_backward_grad_sync = last
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
if distributed.get_rank() == 0:
    print(f"loss {loss.item():.3f}")
distributed.destroy_process_group()
