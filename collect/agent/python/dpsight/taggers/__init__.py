"""Taggers record what tensors are for. Each looks at some tensors when the recorder signals a suitable moment. Hooks do
not know the taggers."""
