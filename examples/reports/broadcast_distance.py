# Source: https://github.com/hcw-00/PatchCore_anomaly_detection/issues/19
# The report says, without a figure: pow and sum keep results of their own.
# dpsight should show: two temporaries of n x m x d of one line of the script's own code.
import torch

x, y = torch.randn(1024, 128, device="cuda"), torch.randn(2048, 128, device="cuda")
for _ in range(3):
    distances = torch.pow(x.unsqueeze(1) - y.unsqueeze(0), 2).sum(2)
