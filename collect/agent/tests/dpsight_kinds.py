"""Gives the agent's tests the numbers in dpsight.kinds. Go tests check these numbers by reading journals that the
agent wrote."""

from decode import kinds as K

__all__ = ["K"]
