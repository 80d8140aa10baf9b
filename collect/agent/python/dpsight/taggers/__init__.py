"""Taggers: each says what some tensors are, when the recorder signals that it is time to look. No hook knows a
tagger."""
