"""What a thread meets when another one, or it itself, is halfway through making, or deferring, a tensor."""

import os
import signal
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


def halfway(before=lambda: None, after=lambda: None):
    """Has something done once, by whoever defers next, before or after the tensor has no pages any more."""
    defer = init._phantom.phantom_defer

    def call(*arguments):
        init._phantom.phantom_defer = defer
        before()
        done = defer(*arguments)
        after()
        return done

    init._phantom.phantom_defer = call


def forked():
    """Another thread defers as this one forks."""
    began, go = threading.Event(), threading.Event()
    halfway(before=lambda: (began.set(), go.wait()))
    other = threading.Thread(target=torch.randn, args=(1 << 20,))
    other.start()
    began.wait()
    child = os.fork()
    if not child:
        signal.alarm(60)  # nobody else ends it
        os._exit(0 if torch.randn(1 << 20).sum() != 0 else 1)
    status = os.waitpid(child, 0)[1]
    go.set()
    other.join()
    return status


def read():
    """A handler of signals reads what this thread has deferred, as it defers more."""
    first = torch.randn(1 << 20)
    halfway(after=lambda: first.sum())
    second = torch.randn(1 << 20)
    return init.counts(), bool(second.sum() != 0)


def raised():
    """A handler of signals raises as this thread defers."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started without one
    tensor = torch.empty(1 << 20)
    halfway(after=lambda: signal.raise_signal(signal.SIGINT))
    try:
        tensor.normal_()
    except KeyboardInterrupt:
        return bool(tensor.sum() != 0)


print({"freed": freed, "forked": forked, "read": read, "raised": raised}[sys.argv[2]]())
