"""dpsight's built-in DP-SGD experiments: `python -m dpsight_experiments --method ghost --preset tiny`."""
