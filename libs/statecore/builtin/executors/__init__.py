"""Executors, which run the function of a job (option ``module_executors``). If an executor returns None, the next
one is called.
"""
