"""What a model and its losses keep beside parameters and buffers (caches, masks, class weights: plain attributes), and
the models that are never called (an average of the weights, a teacher yet to come).

Looked at between steps, when what belongs to one call alone has gone. What the script keeps by names of its own is
found by strays.py. Who else keeps tensors, a function's variable say, is not asked: the garbage collector would need
seconds to name the referrers of each.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dpsight import gradients, kinds, modules, strays, tags
from dpsight.interruptions import by_script
from dpsight.marks import tag_name
from dpsight.state import state
from dpsight.tensors import MOST_ENTRIES, inside, quiet
from dpsight.torch_compat import CHILDREN, PARAMETERS, own_parameters

_CONTAINERS = (list, tuple, dict)
_internal: set[str] = set()  # attributes that every module has
_uncalled: list[Any] = []  # weak references to models that are never called
_was_instrumented = True
_straying = True


def step_ended(finished: int) -> None:
    """Tags what is kept at the end of a step; finished: steps so far. What an instrumented step has made is looked at
    even if the next one is bare: it may not outlive that one."""
    global _was_instrumented
    was, _was_instrumented = _was_instrumented, state.instrumented
    owned = set(tags.owned)
    tags.owned.clear()
    if not (state.cuda and state.recording and state.tagging and (was or state.instrumented)):
        return
    if finished in (1, state.warmup):  # some make their average only after the first step
        _find_uncalled()
    records = _attributes() + _models()
    if was and (finished <= state.warmup or strays.affordable()):  # a bare step does not say what has an owner
        records += _strays(owned.union(r[1] for r in records))
    tags.emit(records)


def kept() -> list[tags.Record]:
    """Records of what models keep, and of models that are never called."""
    return _attributes() + _models()


def strayed(known: set[int]) -> list[tags.Record]:
    """Records of what the script keeps by names of its own."""
    return _strays(known)


def _strays(known: set[int]) -> list[tags.Record]:
    """Records of what the script keeps; none from the first failure on, and all other tags go on."""
    global _straying
    if not _straying:
        return []
    try:
        found = strays.records(known)
        settled = tags.settled_at() if found else ()
        return [r for r in found if r[1] not in settled]
    except Exception as error:
        if by_script(error):
            raise
        _straying = False
        return []


@quiet
def _attributes() -> list[tags.Record]:
    """Records of the tensors that called modules and their parameters have as attributes."""
    if not _internal:
        _internal.update(vars(state.torch.nn.Module()))
    out: list[tags.Record] = []
    for root in modules.roots():
        for path, module in _walked(root.named_modules):
            own, prefix = vars(module), path and path + "."
            for key in [k for k in list(own) if k not in _internal]:
                out += _kept(own[key], root, prefix + key, module)
            for name, p in own_parameters(module):
                if p is not None and p.__dict__:
                    for key in [k for k in list(p.__dict__) if k not in gradients.ATTRIBUTES]:
                        out += _kept(p.__dict__[key], root, f"{prefix}{name}.{key}", module)
    return out


def _kept(value: Any, root: Any, path: str, module: Any) -> list[tags.Record]:
    if isinstance(value, _CONTAINERS):
        tensors = list(inside(value)) if 0 < len(value) <= MOST_ENTRIES else []
    else:
        tensors = [value] if isinstance(value, state.torch.Tensor) else []
    parameter = state.torch.nn.Parameter  # has its tag, whoever lists it
    tensors = [t for t in tensors if t.is_cuda and not isinstance(t, parameter)]
    if not tensors:
        return []
    name, number = tag_name(modules.labelled(path, root)), modules.known(module)
    return [r for tensor in tensors for r in tags.of(kinds.HELD, tensor, name, number)]


@quiet
def _models() -> list[tags.Record]:
    """Records of the weights of models that are never called, under their class's name: they have no other."""
    out: list[tags.Record] = []
    for root in _alive():
        own = type(root).__name__
        for kind, named in ((kinds.PARAMETER, root.named_parameters), (kinds.BUFFER, root.named_buffers)):
            for path, tensor in _walked(named):
                if tensor.is_cuda and id(tensor) not in modules.names:
                    out += tags.of(kind, tensor, tag_name(f"{own}.{modules.plain(path, root)}"))
    return out


def _walked(walk: Callable[[], Iterable[Any]]) -> list[Any]:
    """What a walk of a module gives; nothing of one that refuses to be walked, half made or closed to others."""
    try:
        return list(walk())
    except Exception as error:
        if by_script(error):
            raise
        return []


def _alive() -> Iterator[Any]:
    for ref in _uncalled:
        root = ref()
        if root is not None and not modules.known(root):
            yield root


def _find_uncalled() -> None:
    """Finds the outermost modules that were never called. Takes 40 ms for a quarter of a million objects, so it is done
    twice in a run, in warm-up; the list of them is gone before anything can be allocated."""
    module = state.torch.nn.Module
    # type(), not isinstance(): that asks lazy proxies for their class, and they import something.
    found = [o for o in gc.get_objects() if issubclass(type(o), module) and not modules.known(o)]
    inner = {
        id(m) for o in found if CHILDREN in vars(o) for child in _walked(o.children) for m in _walked(child.modules)
    }
    _uncalled[:] = [weakref.ref(o) for o in found if id(o) not in inner and PARAMETERS in vars(o)]


def after_fork() -> None:
    """The parent's models are not ours to tell of."""
    global _was_instrumented
    _was_instrumented = True
    strays.after_fork()
    _uncalled.clear()
