"""Finds which Python objects hold device memory. A look happens at one moment: when a step has ended, when a request
has failed, or between two lines of the script.

look.py        tags memory that no hook has tagged, by who holds it
keepers.py     records who keeps each block, as a path from a name, and decides when to look
roots.py       finds the living tensors, and what their graphs save
climb.py       searches from a tensor up to a name
references.py  names the steps of such a path
names.py       collects the names that paths begin with
frames.py      lists the running functions
"""
