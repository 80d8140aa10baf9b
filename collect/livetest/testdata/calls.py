"""Counts the calls of the agent's functions in forward, backward and zero_grad of each bare step, and in all steps
the parameters that have hooks of the engine: calls.py. The last parameter has a hook of the script's own."""

import ctypes
import json
import os
import sys
from collections import Counter

import torch
from torch import nn

calls: Counter[str] = Counter()
agent = sys.modules["dpsight.recorder"]
folder = os.path.dirname(sys.modules["dpsight"].__file__) + os.sep


def profile(frame, event, _arg):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(folder):
        calls[f"{code.co_filename.removeprefix(folder)}:{code.co_name}"] += 1


torch.autograd.set_multithreading_enabled(False)  # since only this thread's calls are counted
model = nn.Sequential(
    nn.Embedding(301, 64), *(nn.TransformerEncoderLayer(64, 4) for _ in range(3)), nn.Linear(64, 8)
).cuda()
optimizer = torch.optim.Adam(model.parameters())
own = []
list(model.parameters())[-1].register_post_accumulate_grad_hook(lambda p: own.append(p))
hooks_of = ctypes.PyDLL(
    os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"), mode=os.RTLD_NOLOAD | os.RTLD_NOW
)._ZN5torch8autograd4impl19post_acc_grad_hooksERKN2at6TensorE
hooks_of.argtypes, hooks_of.restype = [ctypes.c_void_p], ctypes.POINTER(ctypes.c_void_p)
for _ in range(8):
    ids = torch.zeros(16, 4, dtype=torch.long, device="cuda")
    instrumented = agent.recorder.level >= agent.MODULES
    calls.clear()
    if not instrumented:
        sys.setprofile(profile)
    model(ids).sum().backward()
    optimizer.zero_grad()
    sys.setprofile(None)
    hooked = sum(bool(hooks_of(ctypes.byref(ctypes.c_void_p(p._cdata)))[0]) for p in model.parameters())
    print("HOOKS", json.dumps([instrumented, hooked, len(list(model.parameters())), len(own)]))
    if not instrumented:
        print("CALLS", json.dumps(calls, sort_keys=True))
    optimizer.step()
