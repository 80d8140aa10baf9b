"""Who holds the memory: looked up at one moment, when a request has failed or between two lines of the script."""
