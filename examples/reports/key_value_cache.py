# Source: https://github.com/huggingface/transformers/issues/25930
# The report says: twice the memory that the cache needs.
# dpsight should show: the script's cache of keys and values, and its copy while torch.cat extends it.
import torch
from torch import nn

project = nn.Linear(1024, 2048).cuda().eval()
cache = torch.empty(64, 0, 2048, device="cuda")
with torch.no_grad():
    for _ in range(24):
        new = project(torch.randn(64, 32, 1024, device="cuda"))
        cache = torch.cat((cache, new), dim=1)
