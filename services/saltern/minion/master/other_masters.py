"""Requests to the other masters of a minion, delivered through the spools of their main processes.

A master that does not answer delays nobody, and receives the request when it is back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.jobs.spool import Spool
from saltern.minion.master.masters import Masters

_LOG = logging.getLogger("saltern.minion")


class OtherMasters:
    """The spools of the minion's other masters, for requests that concern every master. There may be no other master."""

    def __init__(self, masters: Masters, options: MinionOptions) -> None:
        self._spools = [Spool(state / "spool") for state in masters.other_states(options.cachedir)]
        self._most = options.spool_max_bytes

    def send(self, load: Mapping[str, object]) -> None:
        """Put a request into the spool of each other master.

        If a spool exceeds ``spool_max_bytes``, the request is dropped (logged).
        """
        for spool in self._spools:
            if spool.size() > self._most:
                _LOG.error(
                    "a request (%s) for another master is lost: its spool has more than spool_max_bytes",
                    load.get("cmd"),
                )
                continue
            spool.put(load)
