"""Drivers of Salt's SDB: one module for each kind of store. A function takes the key and the profile of a
``sdb://PROFILE/KEY``.
"""
