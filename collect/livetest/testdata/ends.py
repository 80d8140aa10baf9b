"""Trains, and ends the process in an unusual way: ends.py exit|exec|exception|interrupt|status."""

import os
import signal
import sys
import time

import torch
from facts import Net, say, train

mode = sys.argv[1]
model = Net().cuda()
train(model, torch.optim.SGD(model.parameters(), lr=0.1), 4)
say(4)
if mode == "exit":
    os._exit(3)
elif mode == "exec":
    os.execv(sys.executable, [sys.executable, __file__, "again"])
elif mode == "exception":
    raise ValueError("as planned")
elif mode == "interrupt":
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
elif mode == "status":
    sys.exit(4)
