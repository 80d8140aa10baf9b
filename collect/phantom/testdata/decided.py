"""Reads unknown values that the phantom GPU answers in the other way, and prints the reads that it suspects of a
failure."""

import json
import os
import sys

HERE = os.path.abspath(__file__)
DECIDED = ("bool(mask)", "mask.all().item()", "count.item()", "loss.item()", "mask.tolist()", "(loss < 0.5).item()")
LINES = dict.fromkeys(DECIDED)
with open(HERE, encoding="utf-8") as file:
    for number, text in enumerate(file, 1):
        for what in LINES:
            if text.strip() == f"{what},":
                LINES[what] = number
os.environ["PHANTOM_DECISIONS"] = json.dumps([f"{HERE}:{number}" for number in LINES.values()])

import torch  # noqa: E402

sys.path.insert(0, sys.argv[1])
import phantom_values  # noqa: E402

values = phantom_values.install(torch)
x = torch.randn(4, device="cuda")
mask, count, loss = x[0] == x[1], (x > 0).sum(), x.sum()
usual = [bool(mask), count.item(), loss.item()]
other = [
    bool(mask),
    mask.all().item(),
    count.item(),
    loss.item(),
    mask.tolist(),
    (loss < 0.5).item(),
]
after = [bool(mask), count.item(), loss.item()]


def check(value):
    if not value.all():
        raise ValueError("not all of them")


def suspects(function):
    try:
        function()
    except Exception as error:
        return [name.removeprefix(HERE + ":") for name in values.suspects(error.__traceback__)]


def fails():
    check(x > 0)


named = suspects(fails)
torchs = suspects(lambda: torch.testing.assert_close(x, x + 1))
with open(HERE, encoding="utf-8") as file:
    read = next(number for number, text in enumerate(file, 1) if "if not value.all():" in text)
try:
    raise KeyError("of its own")
except KeyError as error:
    unrelated = values.suspects(error.__traceback__)


def leaves():
    if not (x < 0).all():
        raise SystemExit("not all of them")


exits = [values.exits()]
try:
    leaves()
except BaseException:
    exits.append([name.removeprefix(HERE + ":") for name in values.exits()])
with open(HERE, encoding="utf-8") as file:
    left = next(number for number, text in enumerate(file, 1) if "if not (x < 0).all():" in text)
print(
    json.dumps(
        {
            "usual": usual,
            "other": other,
            "after": after,
            "named": named,
            "read": read,
            "torchs": torchs,
            "exits": exits,
            "left": left,
            "unrelated": [name for name in named if f"{HERE}:{name}" in unrelated],
        }
    )
)
