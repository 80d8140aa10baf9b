"""Finds which line of the script requested memory.

script_lines.py    follows the lines, and writes them
node_lines.py      tells which line made a node of a graph
host_loops.py      decides which lines are skipped
sources.py         gets the events of lines from the interpreter
"""
