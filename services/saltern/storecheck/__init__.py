"""The command ``saltern store``: check, repair and migrate the master's data in Redis."""
