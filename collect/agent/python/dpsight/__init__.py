"""Functions by which a training script tells dpsight what hooks cannot see. In a process that is not recorded they do
nothing."""

from dpsight.api import attach, config, detach, dump, mark, metric, phase, plan, predict, step, tag
from dpsight.api import load_ipython_extension as load_ipython_extension  # %load_ext dpsight calls it
from dpsight.api import open as open  # not in __all__: import * must not hide Python's open

__all__ = ["attach", "config", "detach", "dump", "mark", "metric", "phase", "plan", "predict", "step", "tag"]
