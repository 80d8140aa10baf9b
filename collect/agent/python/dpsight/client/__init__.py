"""What a user's own Python calls, in no recorded process: it runs the program dpsight, and reads what that writes."""
