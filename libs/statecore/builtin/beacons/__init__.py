"""Built-in beacons: modules that the minion calls periodically and that report events. They behave like Salt's beacons
of the same names.

Each module has ``validate(ctx, config)``, which returns (True if the configuration is valid, comment), and
``beacon(ctx, config)``, which checks once and returns the list of events. A module that keeps files or processes open
also has ``close(ctx, config)``. State between two checks is kept in ``ctx.scratch``.
Source: docs/execution.md#beacons
"""
