"""Who holds the memory: looked up at one moment, when a step has ended, a request has failed, or between two lines of
the script.

look.py        tags what the memory is of, where no hook has
keepers.py     says who keeps each block, by a path from a name; when to look
roots.py       the tensors that live, and what their graphs save
climb.py       from a tensor up to a name
references.py  the steps on the way
names.py       the names that paths begin with
frames.py      the functions that are under way
"""
