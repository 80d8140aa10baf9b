# Source: https://github.com/Lightning-AI/pytorch-lightning/issues/8583
# The report says, without a figure: outputs are stored though nothing reads them.
# dpsight should show: outputs that the script's list keeps for an end of the epoch that never reads them.
import torch
from torch import nn

net = nn.Linear(1024, 8192).cuda().eval()
outputs = []
with torch.no_grad():
    for _ in range(12):
        prediction = net(torch.randn(4096, 1024, device="cuda"))
        outputs.append({"prediction": prediction, "loss": prediction.mean()})
