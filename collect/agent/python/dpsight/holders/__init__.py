"""Finds who holds the memory. A look happens at one moment: when a step has ended, when a request has failed, or
between two lines of the script.

look.py        tags what the memory is used for, where no hook has
keepers.py     says who keeps each block, by a path from a name, and decides when to look
roots.py       the tensors that live, and what their graphs save
climb.py       from a tensor up to a name
references.py  the steps on the way
names.py       the names that paths begin with
frames.py      the running functions
"""
