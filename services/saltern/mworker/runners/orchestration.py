"""The master as a running orchestration uses it: it publishes jobs, starts runners, calls wheel functions, reads
events, and follows operators' orders.
"""

from __future__ import annotations

import logging

from masterstore.errors import StoreError
from saltern.kit.jobs.control_master import ControlMaster
from saltern.mworker.runners.runner import RunnerTools
from statecore.model.errors import CommandError

_LOG = logging.getLogger("saltern.runner")


class OrchestrationMaster(ControlMaster):
    """Sends an orchestration's requests to the master's port 4507, and reads operators' orders to it from Redis.

    A forked child (``parallel: True``) opens its own connections.
    """

    def __init__(self, tools: RunnerTools, jid: str) -> None:
        self._tools = tools
        super().__init__(tools, jid, self._reopen)

    def orders(self) -> dict[str, dict[str, object]]:
        """Return the operators' orders (pause, kill) to this orchestration, by state ID. Raises CommandError if Redis fails."""
        self._here()
        try:
            return self._tools.store.runner_jobs.orders(self.jid)
        except StoreError as error:
            raise CommandError(f"the orders to the orchestration cannot be read: {error}") from error

    def end_orders(self) -> None:
        """Delete the operators' orders for this orchestration. If Redis does not answer, they expire by themselves."""
        self._here()
        try:
            self._tools.store.runner_jobs.take_back(self.jid)
        except StoreError as error:
            _LOG.info("orders to an orchestration that is over stay until they end: %s", error)

    def _reopen(self) -> RunnerTools:
        self._tools = self._tools.reopened()
        return self._tools
