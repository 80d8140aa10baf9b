"""Fills an attached process's journal several times: attach_ring.py STORE train|infer. Prints what it finds, as
JSON."""

import json
import os
import sys
import tempfile
import threading
from pathlib import Path

import dpsight
import torch

STORE, MODE = sys.argv[1:]
LEAST = 3  # how often the journal must have been full
net = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(30))).cuda()
optimizer = torch.optim.AdamW(net.parameters())


def train() -> None:
    for _ in range(20):
        net(torch.ones(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def infer() -> None:
    with torch.no_grad():
        for _ in range(50):
            net(torch.ones(8, 64, device="cuda"))


def infer_in_threads() -> None:
    threads = [threading.Thread(target=infer) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


train()
flight = dpsight.attach(STORE, name=MODE, journal_mib=4)
child = os.fork()
if child == 0:
    written = dpsight.dump(wait=False)
    dpsight.detach()
    sys.exit(7 if written is None else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
work, largest, rounds = {"train": train, "infer": infer_in_threads}[MODE], 0, 0
while flight.began_anew < LEAST and rounds < 3000:
    work()
    rounds += 1
    largest = max(largest, flight.journal_bytes())
kept = torch.zeros(3 << 20, dtype=torch.uint8, device="cuda")
work()
folder = dpsight.dump(wait=False)
journals = [str(p) for p in Path(tempfile.gettempdir()).glob("dpsight-attached-*/*")]
dpsight.detach()
print(
    json.dumps(
        {
            "run": str(folder),
            "began_anew": flight.began_anew,
            "largest": largest,
            "child": status,
            "journals": len(journals),
            "runs": len(os.listdir(STORE)),
        }
    )
)
