"""Lines for the minion's log, as templates write them (Salt's ``log`` module): ``{% do salt['log.info'](x) %}``."""

from __future__ import annotations

import logging
from typing import Any

from statecore.model.context import Context

VIRTUAL = "log"

_log = logging.getLogger(__name__)


def debug(ctx: Context, message: Any) -> bool:
    """A line of level debug."""
    return _write(logging.DEBUG, message)


def info(ctx: Context, message: Any) -> bool:
    """A line of level info."""
    return _write(logging.INFO, message)


def warning(ctx: Context, message: Any) -> bool:
    """A line of level warning."""
    return _write(logging.WARNING, message)


def error(ctx: Context, message: Any) -> bool:
    """A line of level error."""
    return _write(logging.ERROR, message)


def critical(ctx: Context, message: Any) -> bool:
    """A line of level critical."""
    return _write(logging.CRITICAL, message)


def exception(ctx: Context, message: Any) -> bool:
    """A line of level error, with the exception that is being handled."""
    _log.exception("%s", message)
    return True


def _write(level: int, message: Any) -> bool:
    # A message is text of the tree, not a format.
    _log.log(level, "%s", message)
    return True
