"""Starts the agent once torch is imported. The interpreter's module site runs sitecustomize.py before the script.

sitecustomize.py must be invisible to the script: it imports nothing that site has not loaded, never imports torch, runs
the sitecustomize that would have run otherwise, and removes its own folder from sys.path.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_package = "dpsight"


class Finder:
    """An import finder that calls back right after a module has been executed, and that finds the package dpsight,
    whose folder is not in sys.path.

    The class itself is in sys.meta_path, so that nothing is constructed or pickled.
    """

    callbacks = {}  # module name -> function(module)
    _busy = (
        set()
    )  # names being looked for: a second copy of this finder, or one that delegates to meta_path, would recurse

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == _package:
            return _own_spec(name)
        callback = Finder.callbacks.get(name)
        if callback is None or name in Finder._busy:
            return None
        Finder._busy.add(name)
        try:
            return Finder._wrap(name, path, target)
        finally:
            Finder._busy.discard(name)

    @staticmethod
    def _wrap(name, path, target):
        spec = None
        for finder in sys.meta_path:
            find = None if finder is Finder else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                break
        loader = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return spec

        def exec_module(module):
            try:
                del loader.exec_module  # the loader is restored
            except AttributeError:
                pass
            execute(module)
            callback = Finder.callbacks.pop(name, None)
            if callback is not None:
                call(callback, module)

        try:
            # exec_module is set on the instance, so that the loader's type, inspect.getsource, pkgutil and LazyLoader
            # keep working.
            loader.exec_module = exec_module
        except (AttributeError, TypeError):
            pass
        return spec


def _own_spec(name):
    from importlib.machinery import PathFinder

    return PathFinder.find_spec(name, [_here])


def call(callback, module):
    """Runs a callback of the agent. An error must not break the script; only SystemExit passes."""
    try:
        callback(module)
    except Exception as error:
        sys.stderr.write(f"dpsight: {callback.__name__} failed, the agent is off: {type(error).__name__}: {error}\n")


def _on_torch(torch):
    values = None
    for plugin in os.environ.get("DPSIGHT_PLUGIN", "").split(os.pathsep):
        if not plugin:
            continue
        try:
            installed = _load_plugin(plugin).install(torch)
            values = installed if hasattr(installed, "reads") else values
        except Exception as error:
            sys.stderr.write(
                f"dpsight: the plugin {os.path.basename(plugin)} failed: {type(error).__name__}: {error}\n"
            )
    from dpsight import agent, api
    from dpsight.prediction import prediction

    prediction.follow(values)
    agent.install(torch, Finder.callbacks)
    api.installed()


def _load_plugin(path):
    from importlib.util import module_from_spec, spec_from_file_location

    name = "dpsight_plugin_" + os.path.basename(path).removesuffix(".py")
    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _boot():
    if hasattr(sys, "_dpsight_boot"):  # once in a process, whatever imports this file
        return
    sys._dpsight_boot = Finder
    sys.meta_path.insert(0, Finder)
    if not os.environ.get("DPSIGHT_SPOOL"):
        return
    if "torch" in sys.modules:  # a .pth file has already imported it
        call(_on_torch, sys.modules["torch"])
    else:
        Finder.callbacks["torch"] = _on_torch


def _chain():
    """Runs the sitecustomize that would have run without dpsight, in the same way."""
    me = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != _here]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = me  # there was no other


_boot()
if __name__ == "sitecustomize":
    _chain()
