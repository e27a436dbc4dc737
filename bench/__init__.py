"""Benchmarks of Saltern and real Salt, measured alternately on one machine. Start them with ``make bench``."""
