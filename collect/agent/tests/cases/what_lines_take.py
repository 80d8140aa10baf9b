"""Checks that the agent's figure for the cost of following lines includes reporting passed-over lines again, and
returns. Only code whose lines were passed over reports lines again."""

import sys
import time

import torch
from dpsight.lines import script_lines
from dpsight.lines.host_loops import loops

lines = script_lines.lines
torch.ones(1, device="cuda")
source = lines._source
again = []


def look_again(codes):
    again.extend(code.co_name for code in codes)
    time.sleep(0.2)
    type(source).look_again(source, codes)


class SlowReturns:
    """A source of line events that uses Python's trace function, and is slow at returns."""

    def __init__(self):
        self.codes = set()

    def add(self, code):
        self.codes.add(code)
        sys.settrace(self.called)

    def drop(self, code):
        sys.settrace(None)

    def called(self, frame, _event, _value):
        return self.within if frame.f_code in self.codes else None

    def within(self, _frame, event, _value):
        lines._count += 1
        if event == "return":
            time.sleep(1e-3)
        return self.within


def loop():
    i = 0
    while i < 5000:
        i += 1


source.look_again = look_again
loop()
print("passed over", loops.passed)
before = lines._spent_ns()
lines._look_again()
print("told again of", again, "in 0.2 s", lines._spent_ns() - before >= 0.2e9)
lines._follow(False)
lines._source = SlowReturns()
print("1 ms a return", lines._measure() > 100_000)
lines._source = source
