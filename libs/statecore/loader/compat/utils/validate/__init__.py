"""``salt.utils.validate`` for users' modules: checks of addresses, paths and user names."""
