"""Everything the master remembers, in Redis, behind typed verbs. ``keys`` names every key; ``store.Store`` has the verbs."""
