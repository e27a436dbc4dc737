"""Benchmarks of Saltern and real Salt, run in turn on one machine. Start them with ``make bench``."""
