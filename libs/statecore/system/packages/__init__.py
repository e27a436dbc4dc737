"""Versions and requirements of packages, and the requests of the pkg modules."""
