"""``salt.states`` for users' modules. ``compat/function_modules.py`` makes the modules in it."""
