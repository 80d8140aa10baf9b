"""Tests of the built-in experiments: `python -m unittest discover -s tests -t .` in the folder above."""
