"""Runs loops on the host between lines that request device memory."""

import torch

words = []
for i in range(20_000):
    words.append(i % 7)

cache = []
for _ in range(8):
    cache.append(torch.empty(8 << 20, device="cuda"))
    tmp = torch.empty(4 << 20, device="cuda")
    del tmp


def work(i):
    return None if i < 10_000 else torch.empty(1 << 20, device="cuda")


for i in range(10_008):
    found = work(i)
    if found is not None:
        cache.append(found)
