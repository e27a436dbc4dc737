"""``salt.utils.pkg`` for users' modules."""
