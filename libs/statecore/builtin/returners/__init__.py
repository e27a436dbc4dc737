"""Built-in returners: each has ``returner(ctx, ret)``, which puts the return of a job somewhere besides the master.

``ret`` is the return as the master gets it, with ``id``. Settings are read with ``settings.settings_of``.
"""
