"""Modules, states, grains, beacons, returners, executors, external pillars and tops that Saltern ships; the loader finds them."""
