"""Which line of the script asked for memory.

script_lines.py    follows the lines, and writes them
sources.py         who tells of them
"""
