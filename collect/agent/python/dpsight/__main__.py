"""python -m dpsight: the program dpsight, with this interpreter for what it runs."""

from dpsight.client.program import run

run()
