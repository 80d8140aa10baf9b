"""Taggers: each says what some tensors are, when the recorder tells that it is time to look. No hook knows one."""
