"""Tests %%dpsight in a notebook that nbclient executes. The test's interpreter needs requirements/notebooks.txt,
DPSIGHT_TEST_TORCH_PYTHON names an interpreter with torch, and the program dpsight is on PATH."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

PACKAGE = Path(__file__).resolve().parent.parent / "python"
# The kernel's interpreter has no torch, so recorded processes use another interpreter.
SETUP = f"""
import sys
sys.path.insert(0, {str(PACKAGE)!r})
sys.executable = {os.environ["DPSIGHT_TEST_TORCH_PYTHON"]!r}
%load_ext dpsight
"""
TRAINING = """%%dpsight --device phantom --store runs
import torch
import beside

model = torch.nn.Linear(1000, 1000).cuda()
model(torch.ones(beside.SIZE, 1000, device="cuda")).sum().backward()
print("the cell's own output")
"""
UNKNOWN = """%%dpsight --device t5
pass
"""
FAILING = """%%dpsight --device phantom --store runs --name broken
raise ValueError("a cell that is wrong")
"""


def said(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


class TestNotebook(unittest.TestCase):
    def test_cells(self) -> None:
        with tempfile.TemporaryDirectory() as work:
            (Path(work) / "beside.py").write_text("SIZE = 8\n")
            cells = [SETUP, TRAINING, "_.devices[0]['conservation']['verdict']", FAILING, UNKNOWN]
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
            client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": work}})
            client.execute()
            _, training, verdict, failing, unknown = notebook.cells
            self.assertEqual(said(training), "the cell's own output\n")
            (shown,) = [output for output in training.outputs if output.output_type == "execute_result"]
            page = shown.data["text/html"]
            self.assertIn("<td>parameters</td><td>3.82</td>", page)
            self.assertIn("predicted", page)
            self.assertRegex(shown.data["text/plain"], r"cell-\w+: ok, predicted, peak allocated cuda:0 [\d.]+ MiB")
            self.assertEqual(verdict.outputs[0].data["text/plain"], "'exact'")
            self.assertIn("a cell that is wrong", said(failing))
            self.assertIn("dpsight: error", said(unknown))
            self.assertEqual(len(list(Path(work).glob("runs/*/run.json"))), 2)


if __name__ == "__main__":
    unittest.main()
