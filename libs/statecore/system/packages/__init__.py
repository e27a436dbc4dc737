"""Versions and requirements of packages, and the arguments and results of the ``pkg`` modules."""
