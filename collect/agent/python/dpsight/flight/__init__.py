"""The flight recorder records a process that dpsight did not start.

session.py   begins, ends and dumps
settings.py  the options of attach()
existing.py  tags tensors from before the recording
run.py       writes a run's folder for the program dpsight
sampler.py   samples of the device and of the process, with nvml.py
waiting.py   waits for modules to be imported
"""
