"""python -m dpsight: runs the program dpsight, with this interpreter for Python scripts."""

from dpsight.client.program import run

run()
