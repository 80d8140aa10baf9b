"""Each hook observes one thing that the script does, and reports it to the recorder. No hook knows another hook."""
