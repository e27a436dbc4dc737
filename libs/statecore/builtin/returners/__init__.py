"""Built-in returners. Each has ``returner(ctx, ret)``, which stores a job's return in an additional place besides the
master.

``ret`` is the return that the master receives, with the key ``id``. Settings are read with
``returner_settings.settings_of``.
Source: docs/execution.md#returns
"""
