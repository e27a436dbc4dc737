"""``salt.ext`` for users' modules. It is empty: Salt 3008 has nothing left in it that a module needs."""
