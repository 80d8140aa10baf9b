"""What a thread meets when another one is halfway through making, or deferring, a tensor."""

import sys
import threading

sys.path.insert(0, sys.argv[1])
import phantom_init
import torch

init = phantom_init.install(torch)


def freed():
    """A tensor is freed, and its recipe forgotten, before the thread that is to make it has begun."""
    began, go = threading.Event(), threading.Event()

    class Halting(threading.local):
        def __setattr__(self, name, value):
            began.set()
            go.wait()
            super().__setattr__(name, value)

    init._local = Halting()
    first = torch.randn(1 << 20)
    maker = threading.Thread(target=init._phantom.phantom_make_all)  # as before a fork
    maker.start()
    began.wait()
    del first
    second = torch.randn(1 << 20)
    go.set()
    maker.join()
    return init.counts(), bool(second.sum() != 0)


print({"freed": freed}[sys.argv[2]]())
