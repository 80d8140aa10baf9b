"""python -m dpsight: runs the program dpsight, which then uses this interpreter for Python scripts."""

from dpsight.client.program import run

run()
