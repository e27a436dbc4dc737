"""Drivers of Salt's SDB: one module for each kind of store.

The functions ``get``, ``set`` and ``delete`` take the key and the profile (a map of settings) of a URI
``sdb://PROFILE/KEY``.
"""
