"""Functions for users' own Python code outside of recorded processes. The functions run the program dpsight and read
its output."""
