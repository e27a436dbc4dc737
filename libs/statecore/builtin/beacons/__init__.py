"""Built-in beacons: each has ``validate(ctx, config)``, which says whether a configuration is one and why not, and ``beacon(ctx,
config)``, which looks once and gives the events of that look; ``close(ctx, config)`` where something is held open.

What is remembered between two looks is in ``ctx.scratch``. Source: Salt's beacons of the same names.
"""
