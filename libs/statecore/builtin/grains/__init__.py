"""Grains: facts about the host, one family in each file."""
