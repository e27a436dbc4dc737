"""``salt.utils``: the helpers that users' modules import most."""
