"""Uses deferred tensors while another thread, or a signal handler on the same thread, is making or deferring one."""

import os
import signal
import sys
import threading

sys.path.insert(0, sys.argv[1])
import phantom_init
import torch

init = phantom_init.install(torch)


def freed():
    """Frees a tensor, and so its recipe, just before another thread would make the tensor."""
    began, go = threading.Event(), threading.Event()

    class Halting(threading.local):
        def __setattr__(self, name, value):
            began.set()
            go.wait()
            super().__setattr__(name, value)

    init._local = Halting()
    first = torch.randn(1 << 20)
    maker = threading.Thread(target=init._phantom.phantom_make_all)  # as the phantom GPU does before a fork
    maker.start()
    began.wait()
    del first
    second = torch.randn(1 << 20)
    go.set()
    maker.join()
    return init.counts(), bool(second.sum() != 0)


def halfway(before=lambda: None, after=lambda: None):
    """Calls a function once, when a thread next defers a tensor: before or after the tensor's pages are removed."""
    defer = init._phantom.phantom_defer

    def call(*arguments):
        init._phantom.phantom_defer = defer
        before()
        done = defer(*arguments)
        after()
        return done

    init._phantom.phantom_defer = call


def forked():
    """Forks while another thread defers a tensor."""
    began, go = threading.Event(), threading.Event()
    halfway(before=lambda: (began.set(), go.wait()))
    other = threading.Thread(target=torch.randn, args=(1 << 20,))
    other.start()
    began.wait()
    child = os.fork()
    if not child:
        signal.alarm(60)  # ends a child that hangs
        os._exit(0 if torch.randn(1 << 20).sum() != 0 else 1)
    status = os.waitpid(child, 0)[1]
    go.set()
    other.join()
    return status


def read():
    """Reads a deferred tensor while this thread defers another one, as a signal handler may do."""
    first = torch.randn(1 << 20)
    halfway(after=lambda: first.sum())
    second = torch.randn(1 << 20)
    return init.counts(), bool(second.sum() != 0)


def raised():
    """Raises in a signal handler while this thread defers a tensor."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts without this handler
    tensor = torch.empty(1 << 20)
    halfway(after=lambda: signal.raise_signal(signal.SIGINT))
    try:
        tensor.normal_()
    except KeyboardInterrupt:
        return bool(tensor.sum() != 0)


print({"freed": freed, "forked": forked, "read": read, "raised": raised}[sys.argv[2]]())
