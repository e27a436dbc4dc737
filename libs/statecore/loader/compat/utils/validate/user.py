"""``salt.utils.validate.user``."""

from __future__ import annotations

import re


def valid_username(user: object) -> bool:
    """Whether this can be the name of a user."""
    return (
        isinstance(user, str)
        and len(user) <= 32
        and re.match(r"[a-z_][a-z0-9_-]*[$]?", user, re.IGNORECASE) is not None
    )
