"""``salt.states``: its modules are served by name (``function_modules``)."""
