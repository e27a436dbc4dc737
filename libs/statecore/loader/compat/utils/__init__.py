"""``salt.utils`` for users' modules: the helper functions that modules import most often."""
