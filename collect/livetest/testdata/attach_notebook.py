"""Executes a notebook that calls dpsight.attach(): attach_notebook.py TORCH_PYTHON STORE. Prints the cells' output.
The kernel needs torch; this process does not."""

import json
import os
import sys
import sysconfig
import tempfile
from pathlib import Path

import nbformat

python, store = sys.argv[1:]
jupyter = tempfile.TemporaryDirectory()
os.environ["JUPYTER_PATH"] = jupyter.name
paths = [os.environ.get("PYTHONPATH", ""), sysconfig.get_path("purelib")]
kernel = Path(jupyter.name) / "kernels" / "attached"
kernel.mkdir(parents=True)
command = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
variables = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), **json.loads(os.environ["KERNEL_VARIABLES"])}
spec = {"argv": command, "display_name": "attached", "language": "python", "env": variables}
(kernel / "kernel.json").write_text(json.dumps(spec))

from nbclient import NotebookClient  # noqa: E402  (it reads JUPYTER_PATH as it is imported)

CELLS = [
    "import torch\nmodel = torch.nn.Linear(512, 512).cuda()",
    f"import dpsight\nflight = dpsight.attach({store!r}, name='notebook')",
    "answers = [model(torch.ones(1024, 512, device='cuda')) for _ in range(3)]",
    "large = 1 << 40\ntorch.empty(large, dtype=torch.uint8, device='cuda')",
    "answers.clear()\nprint(len(flight.runs), 'goes on')",
]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
NotebookClient(notebook, timeout=300, kernel_name="attached", allow_errors=True).execute()
said = []
for cell in notebook.cells:
    for output in cell.outputs:
        if output.get("name") != "stderr":
            said.append(output.get("text", output.get("ename", "")).strip())
print(json.dumps(said))
