"""Modules, states, grains, beacons, returners, executors, external pillars and master tops that Saltern ships; the
loader finds them.
"""
