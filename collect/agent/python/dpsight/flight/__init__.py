"""A flight recorder: what records a process that dpsight did not start.

session.py   begins, ends and dumps
settings.py  what it was asked for
existing.py  tags what was there before
run.py       a run's folder, as the program dpsight reads it
sampler.py   samples of the device and of the process, with nvml.py
waiting.py   waits for modules to be imported
"""
