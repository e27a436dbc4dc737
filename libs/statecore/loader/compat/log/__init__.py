"""``salt.log`` for users' modules: Salt's log levels, which are more than Python's."""

from __future__ import annotations

import logging

#: Name of a level, in Salt's options -> number. Salt's own levels are between and below Python's.
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
