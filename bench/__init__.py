"""Speed and memory beside real Salt, in one run on one machine. ``make bench``."""
