"""State runs: the state system behind the ``state`` module, its queue, pauses, disabled states and the minion's running
jobs.
"""
