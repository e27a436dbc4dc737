"""``salt.modules``: its modules are served by name (``function_modules``)."""
