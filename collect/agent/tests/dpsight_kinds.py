"""The agent's own numbers, for the tests: they are checked against the Go side by reading real journals there."""

from decode import kinds as K

__all__ = ["K"]
