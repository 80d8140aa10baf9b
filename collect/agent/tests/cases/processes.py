"""Processes: processes.py MODE.

MODE is exit|late SIGNAL|within|kill|exception|system_exit|exec|fork|idle_fork|held_fork|spawn|mp_fork|workers.
"""

import os
import pickle
import signal
import sys
import threading

import torch
from torch import multiprocessing, nn
from torch.utils.data import DataLoader, TensorDataset


def train(steps, model=None):
    model = model or nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(3, 4)).sum().backward()
        optimizer.step()


def worker(_rank):
    train(2)


def fork_pressed(statuses):
    """Forks a child that receives SIGINT, and appends its exit code to statuses."""
    child = os.fork()
    if child:
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return
    try:
        signal.raise_signal(signal.SIGINT)
        os._exit(1)
    except KeyboardInterrupt:
        os._exit(0)


class Collate:
    """Runs a module, and even a backward, inside a DataLoader's worker."""

    def __init__(self, model):
        self.model = model

    def __call__(self, batch):
        out = self.model(torch.stack([row[0] for row in batch]))
        out.sum().backward()
        return out.detach()


def main(mode):
    if mode == "workers":
        model = nn.Linear(4, 2)
        loader = DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4, num_workers=2, collate_fn=Collate(model))
        for _ in loader:
            train(1, model)
        return
    if mode == "spawn":
        multiprocessing.spawn(worker, nprocs=2)
        return
    if mode == "mp_fork":
        multiprocessing.start_processes(worker, nprocs=2, start_method="fork")
        return
    train(1 if "fork" in mode or mode == "plain" else 2)
    if mode == "exit":
        pickle.loads(pickle.dumps(os._exit))(3)  # as libraries that start processes with pickle do
    if mode == "within":  # a signal that the agent does not block comes while it writes a frame
        from dpsight import journal
        from dpsight.recorder import recorder

        def write(self, *parts, inner=journal.Journal._write):
            signal.raise_signal(signal.SIGXCPU)
            inner(self, *parts)

        signal.signal(signal.SIGXCPU, lambda *_: os._exit(7))
        journal.Journal._write = write
        recorder.name("a frame")
    if mode == "late":  # a handler that raises is called while the agent ends its recording
        from dpsight.tags import tags

        def late(*_):
            raise TimeoutError

        def flush(inner=tags.flush):
            signal.raise_signal(getattr(signal, sys.argv[2]))
            inner()

        signal.signal(signal.SIGALRM, late)
        tags.flush = flush
        try:
            os._exit(7)
        except BaseException as error:
            print("came back", repr(error))
    if mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "exception":
        raise ValueError("the password is " + os.environ.get("MY_PASSWORD", "") + "\nsecond line")
    if mode == "system_exit":
        sys.exit(4)
    if mode == "exec":
        os.execv(sys.executable, [sys.executable, __file__, "plain"])
    if mode == "held_fork":
        from dpsight.interruptions import uninterrupted

        statuses = []
        with uninterrupted:  # the agent blocks signals like this in a drain
            thread = threading.Thread(target=fork_pressed, args=(statuses,))
            thread.start()
            thread.join()
        sys.exit(statuses[0])
    if mode in ("fork", "idle_fork"):
        child = os.fork()
        if child == 0:
            if mode == "fork":
                train(3)
            os._exit(0)
        os.waitpid(child, 0)
        train(1)


if __name__ == "__main__":
    main(sys.argv[1])
