"""``salt.utils.platform``: Saltern manages Linux."""

from __future__ import annotations


def is_linux() -> bool:
    """True."""
    return True


def _no() -> bool:
    """False."""
    return False


is_windows = is_darwin = is_sunos = is_aix = is_freebsd = is_openbsd = is_netbsd = is_proxy = is_junos = _no
