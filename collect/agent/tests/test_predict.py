"""Tests dpsight.predict on the phantom GPU, with the program dpsight on PATH."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import dpsight  # noqa: E402

SCRIPT = """
import sys
import torch

def train():
    model = torch.nn.Linear(1000, 1000).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model(torch.ones(int(sys.argv[1]), 1000, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

if __name__ == "__main__":
    train()
"""


def too_large() -> None:
    import torch

    torch.zeros(5 << 30, device="cuda")  # 20 GiB


def wrong() -> None:
    import torch

    torch.zeros(1, device="cuda")
    raise ValueError("a batch that is wrong")


class TestPredict(unittest.TestCase):
    def test_script(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            script = Path(work) / "train.py"
            script.write_text(SCRIPT)
            store = Path(work) / "runs"
            got = dpsight.predict(script, "8", device="t4", store=store)
            self.assertEqual(len(list(store.glob("*/run.json"))), 1)
        self.assertIs(got.fits, True)
        self.assertEqual(got.device, "Tesla T4")
        self.assertEqual(got.breakdown["parameters"], 4 * (1000 * 1000 + 1000))
        self.assertEqual(sum(got.breakdown.values()), got.peak)
        self.assertTrue(got.peak <= got.reserved <= got.memory, got)
        self.assertIn(got.confidence, {"exact expected", "close"})
        self.assertTrue(got.reasons)

    def test_function_that_does_not_fit(self) -> None:
        got = dpsight.predict(too_large, device="t4")
        self.assertIs(got.fits, False)
        self.assertEqual(got.document["status"], "oom")

    def test_no_prediction(self) -> None:
        from dpsight.client.predict import PredictionError

        with self.assertRaisesRegex(PredictionError, "a batch that is wrong"):
            dpsight.predict(wrong)
        with self.assertRaisesRegex(PredictionError, "unknown device"):
            dpsight.predict(wrong, device="t5")
        with self.assertRaisesRegex(ValueError, "<lambda>"):
            dpsight.predict(lambda: None)


if __name__ == "__main__":
    unittest.main()
