"""Finds which line of the script requested memory.

script_lines.py    follows the lines, and writes them
node_lines.py      tells which line made a node of a graph
host_loops.py      which lines it skips
sources.py         what reports them
"""
