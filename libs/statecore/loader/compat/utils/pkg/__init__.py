"""``salt.utils.pkg`` for users' modules. It is empty: only its submodule ``salt.utils.pkg.rpm`` has functions."""
