"""What Saltern ships and the loader finds by name: modules, states, grains, beacons, returners, executors, external pillars, tops."""
