"""Tags tensors that a model and its losses keep besides parameters and buffers (caches, masks, class weights: plain
attributes), and models that are never called (an average of the weights, a teacher not yet used).

The module looks between steps, when tensors of one call are gone. script_tensors.py finds the tensors that the script
keeps under names of its own. Holders of other kinds, such as variables of functions, are not searched: the garbage
collector would need seconds to find what refers to each tensor.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dpsight import adapters, kinds
from dpsight.recorder import MODULES, drains, events, recorder
from dpsight.registry import plain, registry
from dpsight.taggers.script_tensors import script_tensors
from dpsight.tags import Record, tags
from dpsight.tensors import MOST_ENTRIES, inside, quiet
from dpsight.torch_compat import CHILDREN, PARAMETERS, own_parameters

_CONTAINERS = (list, tuple, dict)


class ModuleAttrs:
    """Tags what models keep between steps."""

    def __init__(self) -> None:
        self._internal: set[str] = set()  # attributes that every module has
        self._uncalled: list[Any] = []  # weak references to models that are never called
        self._was_instrumented = True
        self._private: set[int] = set()  # modules whose inputs or norms the hooks of libraries have taken

    def install(self) -> None:
        """Subscribes to steps, and to the hooks of libraries for differential privacy."""
        events.step_begins.subscribe(self._step_begins)
        events.activations_kept.subscribe(self._hooked)
        events.sampler_begins.subscribe(self._hooked)

    def _hooked(self, module: Any) -> None:
        if number := registry.known(module):
            self._private.add(number)

    def _step_begins(self, number: int, recorded: bool) -> None:
        """Tags what is kept at the end of a step. Tensors that an instrumented step has made are tagged even if the
        next step is bare, since they may not exist after that step."""
        owned = tags.take_owned()
        if not recorded:
            return
        instrumented = recorder.level >= MODULES
        was, self._was_instrumented = self._was_instrumented, instrumented
        if not (recorder.cuda and drains.recording and recorder.tagging and (was or instrumented)):
            return
        warmup = recorder.settings.warmup
        if number in (1, warmup):  # some scripts make their averaged model only after the first step
            self._find_uncalled()
        records = self.records()
        if was and (number <= warmup or script_tensors.affordable()):  # owners are not recorded in bare steps
            records += script_tensors.records(owned.union(r[1] for r in records))
        tags.emit(records)

    def records(self) -> list[Record]:
        """Records of tensors that models keep, and of models that are never called."""
        return self._attributes() + self._models()

    @quiet
    def _attributes(self) -> list[Record]:
        """Records of the tensors that called modules and their parameters have as attributes."""
        if not self._internal:
            self._internal.update(vars(recorder.torch.nn.Module()))
        out: list[Record] = []
        for root in registry.roots():
            for path, module in _walked(root.named_modules):
                own, prefix = vars(module), path and path + "."
                # In any other module, an attribute with such a name is the script's own.
                private = adapters.LAYERS if registry.known(module) in self._private else {}
                for key in [k for k in list(own) if k not in self._internal]:
                    out += _kept(own[key], root, prefix + key, module, private.get(key, kinds.HELD))
                for name, p in own_parameters(module):
                    if p is not None and p.__dict__:
                        for key in [k for k in list(p.__dict__) if k not in adapters.PARAMETERS]:
                            out += _kept(p.__dict__[key], root, f"{prefix}{name}.{key}", module)
        return out

    @quiet
    def _models(self) -> list[Record]:
        """Records of the weights of models that are never called, under the name of their class, since they have no
        other name."""
        out: list[Record] = []
        for root in self._alive():
            own = type(root).__name__
            for kind, named in ((kinds.PARAMETER, root.named_parameters), (kinds.BUFFER, root.named_buffers)):
                for path, tensor in _walked(named):
                    if tensor.is_cuda and not registry.parameter(tensor):
                        out += tags.of(kind, tensor, recorder.tag_name(f"{own}.{plain(path, root)}"))
        return out

    def _alive(self) -> Iterator[Any]:
        for ref in self._uncalled:
            root = ref()
            if root is not None and not registry.known(root):
                yield root

    def _find_uncalled(self) -> None:
        """Finds the outermost modules that were never called. That takes 40 ms for a quarter of a million objects, so
        it happens only twice, during warm-up. The list of modules is released before anything can be allocated."""
        module = recorder.torch.nn.Module
        # type() instead of isinstance(), which asks lazy proxies for their class, so that they import something.
        found = [o for o in gc.get_objects() if issubclass(type(o), module) and not registry.known(o)]
        inner = {
            id(m) for o in found if CHILDREN in vars(o) for child in _walked(o.children) for m in _walked(child.modules)
        }
        self._uncalled[:] = [weakref.ref(o) for o in found if id(o) not in inner and PARAMETERS in vars(o)]


def _kept(value: Any, root: Any, path: str, module: Any, kind: int = kinds.HELD) -> list[Record]:
    if isinstance(value, _CONTAINERS):
        tensors = list(inside(value)) if 0 < len(value) <= MOST_ENTRIES else []
    else:
        tensors = [value] if isinstance(value, recorder.torch.Tensor) else []
    parameter = recorder.torch.nn.Parameter  # a parameter has its own tag, whichever module lists it
    tensors = [t for t in tensors if t.is_cuda and not isinstance(t, parameter)]
    if not tensors:
        return []
    name, number = recorder.tag_name(registry.labelled(path, root)), registry.known(module)
    if kind != kinds.HELD:  # what a hook keeps for a layer has only the layer's name, here as when it is kept
        name = 0
    return [r for tensor in tensors for r in tags.of(kind, tensor, name, number)]


def _walked(walk: Callable[[], Iterable[Any]]) -> list[Any]:
    """The values that a walk of a module yields. There are none if the module cannot be walked, because it is half made
    or refuses access."""
    try:
        return list(walk())
    except Exception as error:
        recorder.spared("walking a module", error)
        return []


module_attrs = recorder.part(ModuleAttrs)
