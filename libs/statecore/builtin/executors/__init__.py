"""Executors: ways to run a function of a job (``module_executors``). One that returns None leaves it to the next."""
