"""Prints which private features of torch this version has."""

import json
import sys

sys.path.insert(0, sys.argv[1])
import phantom_torch  # noqa: E402
import torch  # noqa: E402

json.dump({"features": list(phantom_torch.FEATURES), "missing": phantom_torch.missing(torch)}, sys.stdout)
