"""Builds a release: wheels, Debian packages, images, lists of what is in them, and signed checksums.

Source: docs/release.md#steps
"""
