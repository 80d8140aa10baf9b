"""A few calls by which a training script tells more than hooks can see. Without a recording they do nothing."""

from dpsight.api import attach, config, detach, dump, mark, metric, phase, plan, predict, step, tag
from dpsight.api import load_ipython_extension as load_ipython_extension  # by %load_ext dpsight
from dpsight.api import open as open  # not in __all__: import * shall not hide the function of that name

__all__ = ["attach", "config", "detach", "dump", "mark", "metric", "phase", "plan", "predict", "step", "tag"]
