"""What a user's own Python calls outside of recorded processes. It runs the program dpsight and reads its output."""
