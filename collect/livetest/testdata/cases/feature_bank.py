# A softmax saves its result for backward, and the script keeps that result without its graph: a feature bank. No
# backward ever runs, and each graph is gone with the next iteration.
# Right: script, global bank; activations of the graphs that still live.
import torch

weight = torch.randn(1024, 1024, device="cuda", requires_grad=True)
bank = []
for _ in range(12):
    features = torch.softmax(torch.randn(2048, 1024, device="cuda") @ weight, 1)
    bank.append(features.detach())
