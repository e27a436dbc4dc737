"""``salt.ext``: nothing of it is left in Salt 3008 that a module would need."""
