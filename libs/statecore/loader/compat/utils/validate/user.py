"""``salt.utils.validate.user`` for users' modules: a check of user names."""

from __future__ import annotations

import re


def valid_username(user: object) -> bool:
    """Return whether the value can be the name of a Linux user: at most 32 characters, the first a letter or ``_``."""
    return (
        isinstance(user, str)
        and len(user) <= 32
        and re.match(r"[a-z_][a-z0-9_-]*[$]?", user, re.IGNORECASE) is not None
    )
