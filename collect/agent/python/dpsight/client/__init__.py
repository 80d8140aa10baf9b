"""Functions for users' own Python code outside of recorded processes. They run the program dpsight and read its
output."""
