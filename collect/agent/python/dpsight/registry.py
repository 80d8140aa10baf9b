"""Numbers for modules, parameters and optimizers, by identity, and the names that tables give them."""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from dpsight import kinds
from dpsight.recorder import recorder, unphased
from dpsight.tensors import quiet
from dpsight.torch_compat import WRAPPERS, forward_hooks, private

# Parts of paths that wrappers of Opacus and torch add. Without them a layer has the same name under every method.
_WRAPPERS = {"_module", *WRAPPERS}
_MOST_ROOTS = 50  # roots whose names are compared with a new root's
_PARALLEL = {"DistributedDataParallel", "DataParallel"}


class Registry:
    """All modules and optimizers that were seen."""

    def __init__(self) -> None:
        self._ids: dict[int, int] = {}  # id(module) → number
        self._titles: dict[int, str] = {}  # id(module) → its name in sentences
        self._alive: dict[int, Any] = {}  # id(module) → weak reference that removes it: addresses are used again
        self._next = itertools.count(1).__next__
        self._infos: dict[int, dict[str, Any]] = {}  # id(module) → its written record
        self._roots: dict[int, Any] = {}  # id(module) → weak reference
        self._callers: dict[int, int] = {}  # id(module) → the thread that last called this root
        # id(module) of roots → the prefix of its paths: empty, unless an earlier model has the same paths
        self._labels: dict[int, str] = {}
        # id(module) of a root → path of a parameter → number of its name in the tables
        self._numbers: dict[int, dict[str, int]] = {}
        self._parameters: dict[int, int] = {}  # id(parameter) → number of its name; collected again at every walk
        self._named: dict[int, set[int]] = {}  # id(module) of roots → id() of the parameters that a walk has named
        self._optimizer_ids: dict[int, int] = {}  # id(optimizer) → number
        self._optimizers: dict[int, Any] = {}  # id(optimizer) → weak reference
        self._next_optimizer = itertools.count(1).__next__

    # Modules.

    def number(self, module: Any, outermost: bool) -> int:
        """The module's number. For a new root, its whole tree gets numbers."""
        found = self._ids.get(id(module))
        if outermost:
            self._callers[id(module)] = threading.get_ident()
        if found is None or (outermost and id(module) not in self._roots):
            self._register(module, outermost)
            found = self._ids[id(module)]
        return found

    def known(self, module: Any) -> int:
        """The module's number, 0 if it was never seen."""
        return self._ids.get(id(module), 0)

    def title(self, module: Any) -> str:
        """A module's name in sentences: the class of its model, and its path in the model."""
        found = self._titles.get(id(module))
        return found if found is not None else type(module).__name__

    def is_root(self, module: Any) -> bool:
        """Whether the module was once called outside of another module."""
        return id(module) in self._roots

    def roots(self) -> Iterator[Any]:
        """The roots that are alive."""
        for ref in list(self._roots.values()):
            root = ref()
            if root is not None:
                yield root

    def called_here(self, root: Any) -> bool:
        """Whether this thread was the last to call a root."""
        return self._callers.get(id(root)) == threading.get_ident()

    def called_elsewhere(self) -> bool:
        """Whether another thread has called some model."""
        return any(thread != threading.get_ident() for thread in list(self._callers.values()))

    @quiet
    def _register(self, root: Any, outermost: bool) -> None:
        infos = []
        inner = {id(m) for m in root.modules()}
        if outermost and id(root) not in self._labels:
            self._labels[id(root)] = self._label(root, inner)
            self._numbers.pop(id(root), None)
        for path, module in root.named_modules():
            key = id(module)
            if key in self._ids:
                continue
            self._ids[key] = self._next()
            self._titles[key] = f"{type(root).__name__}.{plain(path, root)}" if path else type(module).__name__
            self._alive[key] = weakref.ref(module, functools.partial(self._forget, key))
            self._infos[key] = {
                "id": self._ids[key],
                "path": self.labelled(path, root) if outermost or path else type(module).__name__,
                "class": type(module).__name__,
                "parameter_bytes": sum(_bytes(p) for p in module.parameters(recurse=False)),
                "norm_by": norm_by(module),
            }
            infos.append(self._infos[key])
        if outermost:
            # A root that later became part of another module (wrapped after its first call) is no longer a root.
            for key in inner.intersection(list(self._roots)):  # a copy: another thread may call its own model
                self._roots.pop(key, None)
            self._roots[id(root)] = weakref.ref(root)
        if infos:
            recorder.frame(kinds.FRAME_MODULES, {"modules": infos})

    def _forget(self, key: int, _ref: Any) -> None:
        for known in (self._ids, self._titles, self._alive, self._infos):
            known.pop(key, None)
        for known in (self._roots, self._callers, self._labels, self._numbers):
            known.pop(key, None)
        self._forget_names(self._named.pop(key, ()))

    def normed(self, module: Any) -> None:
        """Writes how the norm of a module's gradients was just computed, if that is new."""
        info = self._infos.get(id(module))
        if info is not None and (found := norm_by(module)) != info["norm_by"]:
            info["norm_by"] = found
            recorder.frame(kinds.FRAME_MODULES, {"modules": [info]})

    # Names of modules and parameters.

    def _label(self, root: Any, inner: set[int]) -> str:
        """The prefix for a root whose parameters have the same names as another model's, such as a teacher of its
        student's class: the root's class, with a number if necessary. Without it, tables could not distinguish the two.
        A wrapper of an earlier root gets no prefix."""
        others = [r for r in self.roots() if id(r) not in inner and r is not root]
        try:
            own = {plain(path, root): id(p) for path, p in root.named_parameters()}
            if not own or not any(_another(own, r) for r in others[:_MOST_ROOTS]):
                return ""
        except Exception as error:  # a model that cannot be walked
            recorder.spared("walking a model", error)
            return ""
        taken = {self._labels.get(id(r), "") for r in others}
        cls = type(root).__name__
        return next(s for s in itertools.chain([cls], (f"{cls}#{n}" for n in itertools.count(2))) if s not in taken)

    def labelled(self, path: str, root: Any) -> str:
        """A path as tables show it: without wrappers, and with its model's class if another model has the same path."""
        label, rest = self._labels.get(id(root), ""), plain(path, root)
        return f"{label}.{rest}" if label and rest else label or rest

    def name_parameters(self, root: Any) -> Iterator[tuple[Any, int]]:
        """Names the parameters of a root by their paths. Yields each with the number of its name. Parameters that no
        longer belong to the root lose their names, since addresses are used again. Inside torch.func, wrappers may
        stand for a model's parameters until its next walk."""
        named: set[int] = set()
        numbers = self._numbers.setdefault(id(root), {})
        for path, p in root.named_parameters():
            name = numbers.get(path)
            if name is None:
                name = numbers[path] = recorder.tag_name(self.labelled(path, root))
            self._parameters[id(p)] = name
            named.add(id(p))
            yield p, name
        before = self._named.get(id(root), set())
        if private.functorch_level() is not None:
            named |= before
        else:
            self._forget_names(before - named)
        self._named[id(root)] = named

    def _forget_names(self, gone: Iterable[int]) -> None:
        for key in gone:
            self._parameters.pop(key, None)

    def rename_parameter(self, p: Any, name: int) -> None:
        """Gives a parameter the name with this number."""
        self._parameters[id(p)] = name

    def parameter(self, p: Any) -> int:
        """The number of a parameter's name, 0 if it has none."""
        return self._parameters.get(id(p), 0)

    # Optimizers.

    def optimizer(self, optimizer: Any) -> int:
        """The optimizer's number, from 1. When an optimizer gets its number, its name "optimizer N Class" is
        written."""
        key = id(optimizer)
        found = self._optimizer_ids.get(key)
        if found is None:
            found = self._optimizer_ids[key] = self._next_optimizer()
            self._optimizers[key] = weakref.ref(optimizer, lambda _ref: self._forget_optimizer(key))
            recorder.name(f"optimizer {found} {type(optimizer).__name__}")
        return found

    def optimizers(self) -> list[Any]:
        """The optimizers that have stepped and are alive."""
        return [o for o in (ref() for ref in list(self._optimizers.values())) if o is not None]

    def _forget_optimizer(self, key: int) -> None:
        self._optimizer_ids.pop(key, None)
        self._optimizers.pop(key, None)
        unphased.forget_optimizer(key)


def _another(own: dict[str, int], root: Any) -> bool:
    """Whether one of these names belongs to a different parameter in another root."""
    return any(own.get(plain(path, root), id(p)) != id(p) for path, p in root.named_parameters())


def _bytes(parameter: Any) -> int:
    try:
        return parameter.numel() * parameter.element_size()
    except RuntimeError:
        return 0  # the parameter of a lazy module has no shape yet


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
    """How an Opacus hook computes the norm of this module's gradients, if such a hook is attached.

    The hook is a bound method, whose object knows that. Hooks that decide by the input's size have a dictionary
    norm_by, which contains the module after its first norm.
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


registry = recorder.part(Registry)
