"""For users' own Python code outside of recorded processes. Its functions run the program dpsight and read its
output."""
