"""Which line of the script asked for memory.

script_lines.py    follows the lines, and writes them
host_loops.py      which lines it passes over
sources.py         who tells of them
"""
