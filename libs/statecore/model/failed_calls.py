"""Execution functions as templates and users' modules call them: a failed call returns the value that Salt's function
returns, and raises nothing.
"""

from __future__ import annotations

import logging

from statecore.model.errors import CallFailed
from statecore.model.ports import Function

log = logging.getLogger(__name__)


def salted(name: str, function: Function) -> Function:
    """Return an execution function that handles its error CallFailed: it logs the error and returns the value that Salt's
    function returns. The log calls it ``name``. The result shows ``__name__`` and ``__doc__`` alone.
    """

    def call(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except CallFailed as failed:
            log.error("%s failed: %s", name, failed)
            return failed.value

    call.__name__ = name.rpartition(".")[2]
    call.__doc__ = function.__doc__
    return call
