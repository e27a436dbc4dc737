"""``salt.log``: Python's logging, with Salt's further levels."""

from __future__ import annotations

import logging

#: Salt's levels between and below Python's.
LOG_LEVELS = {
    "all": logging.NOTSET,
    "debug": logging.DEBUG,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "garbage": 1,
    "info": logging.INFO,
    "profile": 15,
    "quiet": 1000,
    "trace": 5,
    "warning": logging.WARNING,
}
