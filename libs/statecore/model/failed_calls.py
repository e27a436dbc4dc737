"""Execution functions as templates and users' modules call them: a failed call returns the value that Salt's function
returns, and raises nothing.
"""

from __future__ import annotations

import logging

from statecore.model.errors import CallFailed
from statecore.model.ports import Function

log = logging.getLogger(__name__)


class SaltedFunction:
    """An execution function that handles its error CallFailed: it logs the error and returns the value that Salt's
    function returns.

    All attributes, such as ``__doc__``, are the function's own.
    """

    __slots__ = ("__dict__", "__wrapped__", "_name")

    def __init__(self, name: str, function: Function, module: str = __name__) -> None:
        """Wrap ``function``, which the log calls ``name``. ``module`` becomes the wrapper's ``__module__``."""
        self._name = name
        self.__wrapped__ = function
        self.__module__ = module

    def __call__(self, *args: object, **kwargs: object) -> object:
        try:
            return self.__wrapped__(*args, **kwargs)
        except CallFailed as failed:
            log.error("%s failed: %s", self._name, failed)
            return failed.value

    def __getattr__(self, name: str) -> object:
        return getattr(self.__wrapped__, name)
