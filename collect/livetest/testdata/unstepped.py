"""Allocates without training, so that no step ends, and kills itself after some seconds: unstepped.py KIND SECONDS.
Before that, it prints the times of its last allocation and of the kill."""

import os
import signal
import sys
import threading
import time

import torch

kind, seconds = sys.argv[1], float(sys.argv[2])
torch.empty(1, device="cuda")
model = torch.nn.Linear(64, 64).cuda()
began, last = time.monotonic(), [0]


def forwards():
    with torch.no_grad():
        model(torch.empty(8, 64, device="cuda"))


def tensors():
    torch.empty(1000, device="cuda")


def work(once, long=1e9):
    while time.monotonic() - began < long:
        once()
        last[0] = time.time_ns()
        time.sleep(0.001)


def end():
    time.sleep(seconds)
    sys.stdout.write(f"{last[0]} {time.time_ns()}\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


threading.Thread(target=end, daemon=True).start()
if kind == "thread":
    worker = threading.Thread(target=work, args=(tensors,))
    worker.start()
    worker.join()
elif kind == "asleep":
    work(tensors, seconds / 3)
    time.sleep(1e6)
else:
    work(globals()[kind])
