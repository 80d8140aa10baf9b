"""Allocates until memory runs out, and prints how much it held. After it frees the memory, it allocates as much
again."""

import json
import sys

import torch

MIB = 1 << 20
blocks = []
message = ""
try:
    while len(blocks) < 10_000:
        blocks.append(torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"))
except torch.OutOfMemoryError as error:
    message = str(error)
held = len(blocks)
free = torch.cuda.mem_get_info()[0]
blocks.clear()
torch.cuda.empty_cache()
after = torch.cuda.mem_get_info()[0]
again = torch.empty(64 * held * MIB, dtype=torch.uint8, device="cuda").numel() // MIB
json.dump({"held": held, "message": message, "free": free, "after": after, "again": again}, sys.stdout)
