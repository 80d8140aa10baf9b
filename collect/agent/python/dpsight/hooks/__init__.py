"""Hooks: each sees one thing that the script does, and reports it to the recorder. None knows another."""
