"""``salt.utils.validate``."""
