"""Execution modules. Each file or folder is one module of Salt's name."""
