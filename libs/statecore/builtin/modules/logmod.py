"""Lines in the minion's log, written by templates such as ``{% do salt['log.info'](x) %}``: Salt's ``log`` execution
module.
"""

from __future__ import annotations

import logging

from statecore.model.context import Context

VIRTUAL = "log"

_log = logging.getLogger(__name__)


def debug(ctx: Context, message: object) -> bool:
    """Log a message with level debug. Return True."""
    return _write(logging.DEBUG, message)


def info(ctx: Context, message: object) -> bool:
    """Log a message with level info. Return True."""
    return _write(logging.INFO, message)


def warning(ctx: Context, message: object) -> bool:
    """Log a message with level warning. Return True."""
    return _write(logging.WARNING, message)


def error(ctx: Context, message: object) -> bool:
    """Log a message with level error. Return True."""
    return _write(logging.ERROR, message)


def critical(ctx: Context, message: object) -> bool:
    """Log a message with level critical. Return True."""
    return _write(logging.CRITICAL, message)


def exception(ctx: Context, message: object) -> bool:
    """Log a message with level error, and the traceback of the exception that is being handled. Return True."""
    _log.exception("%s", message)
    return True


def _write(level: int, message: object) -> bool:
    # The message is passed as an argument, so that `%` in it is not a format.
    _log.log(level, "%s", message)
    return True
