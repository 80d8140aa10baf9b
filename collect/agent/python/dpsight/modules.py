"""Numbers for modules, by identity, and the tensors that belong to a model: parameters, buffers, gradients."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Iterator
from typing import Any

from dpsight import kinds, tags
from dpsight.interruptions import by_script
from dpsight.marks import frame, tag_name
from dpsight.state import Calm, state
from dpsight.tensors import quiet
from dpsight.torch_compat import WRAPPERS, forward_hooks

# What wrappers put into a path, Opacus' and torch's: the same layer keeps its name under every method.
_WRAPPERS = {"_module", *WRAPPERS}
_MOST_ROOTS = 50  # that a new root's names are compared with
_PARALLEL = {"DistributedDataParallel", "DataParallel"}

_ids: dict[int, int] = {}  # id(module) → number
_alive: dict[int, Any] = {}  # id(module) → weak reference that removes it: addresses are used again
_count = itertools.count(1).__next__
_infos: dict[int, dict[str, Any]] = {}  # id(module) → what was written of it
_roots: dict[int, Any] = {}  # id(module) → weak reference
_callers: dict[int, int] = {}  # id(module) → the thread that called this root last
# id(module) of roots → what its paths begin with: nothing, but for a second model of such paths
_labels: dict[int, str] = {}
_tagged: set[int] = set()  # id(module) of roots tagged in this step
names: dict[int, int] = {}  # id(parameter) → number of its name; written anew at every walk


def number(module: Any, outermost: bool) -> int:
    """The module's number. A root that was never seen brings its whole tree."""
    found = _ids.get(id(module))
    if outermost:
        _callers[id(module)] = threading.get_ident()
    if found is None or (outermost and id(module) not in _roots):
        _register(module, outermost)
        found = _ids[id(module)]
    return found


def is_root(module: Any) -> bool:
    """Whether the module was called on its own before."""
    return id(module) in _roots


def known(module: Any) -> int:
    """The module's number, 0 if it was never seen."""
    return _ids.get(id(module), 0)


@quiet
def _register(root: Any, outermost: bool) -> None:
    infos = []
    inner = {id(m) for m in root.modules()}
    if outermost and id(root) not in _labels:
        _labels[id(root)] = _label(root, inner)
    for path, module in root.named_modules():
        key = id(module)
        if key in _ids:
            continue
        _ids[key] = _count()
        _alive[key] = weakref.ref(module, functools.partial(_forget, key))
        _infos[key] = {
            "id": _ids[key],
            "path": labelled(path, root) if outermost or path else type(module).__name__,
            "class": type(module).__name__,
            "parameter_bytes": sum(_bytes(p) for p in module.parameters(recurse=False)),
            "norm_by": norm_by(module),
        }
        infos.append(_infos[key])
    if outermost:
        # A root that turned out to be part of another (wrapped after its first call) is a root no more.
        for key in inner.intersection(list(_roots)):  # a list at once: another thread may call its own model
            _roots.pop(key, None)
        _roots[id(root)] = weakref.ref(root)
    if infos:
        frame(kinds.FRAME_MODULES, {"modules": infos})


def _label(root: Any, inner: set[int]) -> str:
    """The class of a root whose parameters have the names of another model's (a teacher's, of its student's class),
    numbered if need be: else the two would be one in every table. A wrapper of what was a root is none such."""
    others = [r for r in roots() if id(r) not in inner and r is not root]
    try:
        own = {plain(path, root): id(p) for path, p in root.named_parameters()}
        if not own or not any(_another(own, r) for r in others[:_MOST_ROOTS]):
            return ""
    except Exception as error:  # a model that refuses to be walked
        if by_script(error):
            raise
        return ""
    taken = {_labels.get(id(r), "") for r in others}
    cls = type(root).__name__
    return next(s for s in itertools.chain([cls], (f"{cls}#{n}" for n in itertools.count(2))) if s not in taken)


def _another(own: dict[str, int], root: Any) -> bool:
    """Whether some name is of another parameter there."""
    return any(own.get(plain(path, root), id(p)) != id(p) for path, p in root.named_parameters())


def labelled(path: str, root: Any) -> str:
    """A path as it stands in tables: without wrappers, with its model's class where another has the same."""
    label, rest = _labels.get(id(root), ""), plain(path, root)
    return f"{label}.{rest}" if label and rest else label or rest


def _forget(key: int, _ref: Any) -> None:
    _ids.pop(key, None)
    _alive.pop(key, None)
    _infos.pop(key, None)
    _roots.pop(key, None)
    _callers.pop(key, None)
    _labels.pop(key, None)


def _bytes(parameter: Any) -> int:
    try:
        return parameter.numel() * parameter.element_size()
    except RuntimeError:
        return 0  # a lazy module's parameter has no shape yet


def plain(path: str, root: Any) -> str:
    """A path without the components that wrappers add."""
    return _plain(path, type(root).__name__ in _PARALLEL)


@functools.lru_cache(maxsize=1 << 16)
def _plain(path: str, parallel: bool) -> str:
    parts = path.split(".")
    if parallel and parts[0] == "module":
        del parts[0]
    return ".".join(p for p in parts if p not in _WRAPPERS)


def norm_by(module: Any) -> str | None:
    """How an Opacus hook takes the norm of this module's gradients, if one is attached.

    The hook is a bound method, and its object knows. Hooks that choose by the input's size have a dictionary norm_by,
    with the module in it from its first norm on.
    """
    for hook in forward_hooks(module):
        owner = getattr(hook, "__self__", None)
        if owner is None or not hasattr(owner, "GRAD_SAMPLERS"):
            continue
        if not any(p.requires_grad for p in module.parameters()):
            return None
        chosen = getattr(owner, "norm_by", None)
        if isinstance(chosen, dict):
            return chosen.get(module)
        ghost = getattr(owner, "use_ghost_clipping", False) and type(module) in getattr(owner, "NORM_SAMPLERS", {})
        return "ghost" if ghost else "per_sample"
    return None


def normed(module: Any) -> None:
    """Writes how the norm of a module's gradients was just taken, if that is news."""
    info = _infos.get(id(module))
    if info is not None and (found := norm_by(module)) != info["norm_by"]:
        info["norm_by"] = found
        frame(kinds.FRAME_MODULES, {"modules": [info]})


def roots() -> Iterator[Any]:
    """The roots that are alive."""
    for ref in list(_roots.values()):
        root = ref()
        if root is not None:
            yield root


def called_elsewhere() -> bool:
    """Whether another thread has called a model."""
    return any(thread != threading.get_ident() for thread in list(_callers.values()))


def tag_once(root: Any) -> list[tags.Record]:
    """Records of a model at its first call in a step."""
    if id(root) in _tagged:
        return []
    return tag_model(root)


@quiet
def tag_model(root: Any, calm: Calm | None = None) -> list[tags.Record]:
    """Records of a model's parameters and buffers, and of all that hangs on its parameters; hooks these on the way.
    Where it is not calm, gradients and hooks are let alone."""
    from dpsight import gradients

    if calm is None:
        _tagged.add(id(root))
    out: list[tags.Record] = []
    for path, p in root.named_parameters():
        name = names[id(p)] = tag_name(labelled(path, root))
        still = calm is None or calm(p.device)
        if still:
            gradients.watch(p)
        if not tags.settled(kinds.PARAMETER, p):
            out += tags.lasting(kinds.PARAMETER, p, name)
        out += gradients.attached(p, name, still)
    for path, buffer in root.named_buffers():
        if not tags.settled(kinds.BUFFER, buffer):
            out += tags.lasting(kinds.BUFFER, buffer, tag_name(labelled(path, root)))
    return out


def after_fork() -> None:
    """Numbers are written to a journal that is the parent's: give out new ones."""
    _ids.clear()
    _alive.clear()
    _infos.clear()
    _roots.clear()
    _callers.clear()
    _labels.clear()
    names.clear()
    _tagged.clear()


def tag_roots() -> None:
    """Tags all models that were seen, as they lie when a step begins. Where several threads train, each tags its own:
    the engine replaces the others' gradients meanwhile, and holds no lock that would keep them from being read."""
    _tagged.clear()
    if state.instrumented and state.cuda:
        for root in roots():
            if state.trainers < 2 or _callers.get(id(root)) == threading.get_ident():
                tags.emit(tag_model(root))
