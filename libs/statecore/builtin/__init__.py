"""Modules, states, grains, beacons, returners, engines, executors, external pillars and master tops that Saltern ships; the
loader finds them.
"""
