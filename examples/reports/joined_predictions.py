# Source: https://github.com/huggingface/transformers/issues/7232
# The report says, without a figure: fails in evaluation of 469,530 sentences.
# dpsight should show: the script's joined predictions, twice while torch.cat copies them.
import torch
from torch import nn

net = nn.Linear(256, 32768).cuda().eval()
predictions = None
with torch.no_grad():
    for _ in range(24):
        logits = net(torch.randn(256, 256, device="cuda"))
        predictions = logits if predictions is None else torch.cat((predictions, logits))
