"""What other masters of the minion are to hear, too: it waits in their spools, from where their processes send it.

So a master that is away holds up nobody, and has it when it is back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.jobs.spool import Spool
from saltern.minion.master.masters import Masters

_LOG = logging.getLogger("saltern.minion")


class OtherMasters:
    """The masters that other processes of this minion speak to; there may be none."""

    def __init__(self, masters: Masters, options: MinionOptions) -> None:
        self._spools = [Spool(state / "spool") for state in masters.other_states(options.cachedir)]
        self._most = options.spool_max_bytes

    def send(self, load: Mapping[str, Any]) -> None:
        """Leaves a request for each of them."""
        for spool in self._spools:
            if spool.size() > self._most:
                _LOG.error("a %s is lost for a master: spool_max_bytes wait for it already", load.get("cmd"))
                continue
            spool.put(load)
