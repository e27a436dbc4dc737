"""``retry:`` of a state: how often, how long between, until what. Pure but for the splay, which is a random number given in."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from statecore.model.named_tuple import NamedTuple

log = logging.getLogger(__name__)


class Retry(NamedTuple):
    """Call again while the result is not ``until``. Seconds; ``attempts`` counts the first call too."""

    until: bool = True
    attempts: int = 2
    interval: int = 30
    splay: int = 0

    def would(self) -> str:
        """Test mode's sentence."""
        return (
            f"The state would be retried every {self.interval} seconds (with a splay of up to {self.splay} seconds)"
            f" a maximum of {self.attempts} times or until a result of {self.until} is returned"
        )


_TYPES: Mapping[str, type] = {"until": bool, "attempts": int, "interval": int, "splay": int}


def parse(value: Any) -> Retry:
    """The chunk's ``retry``: True, or a dict; a value of the wrong type is logged and the default stands."""
    if value is True:
        return Retry()
    if value is False:
        return Retry(attempts=0)
    if not isinstance(value, dict):
        log.warning("retry is %r; True or a dict was expected, using the defaults", value)
        return Retry()
    given: dict[str, Any] = {}
    for key, kind in _TYPES.items():
        if key not in value:
            continue
        if isinstance(value[key], kind):
            given[key] = value[key]
        else:
            log.warning("retry: %s must be a %s, not %r; using the default", key, kind.__name__, value[key])
    return Retry(**given)


def told(attempt: int, result: Any, comment: str) -> str:
    """The line that remembers an attempt that did not do."""
    return f'Attempt {attempt}: Returned a result of "{result}", with the following comment: "{comment}"'
