"""Jobs that wait for a minion (``salt --when-back``) are sent to it again when it is heard of.

For stock minions: ours ask for what they missed (``_missed``), once they have a connection. What a stock minion is sent before its
subscription has arrived is lost: at its start it signs in first, then subscribes, and fires its start event at last. So the start
event sends again whatever the minion has not taken; any other word only what it is known not to have been sent.
"""

from __future__ import annotations

import time

from saltern.mworker.worker_context import WorkerContext


def heard_of(context: WorkerContext, minion_id: str, *, started: bool = False) -> None:
    """Notes that the minion spoke, and sends it what waits for it. One round trip where nothing does."""
    if context.store.presence.arrived(minion_id, int(time.time() * 1000)):
        send_waiting(context, minion_id, started=started)


def send_waiting(context: WorkerContext, minion_id: str, *, started: bool = False) -> None:
    """Publishes what waits for the minion. ``started``: it has just begun to hear."""
    now_ms = int(time.time() * 1000)
    for load in context.store.jobs.waiting(minion_id, now_ms, offline=not started):
        if context.store.jobs.resend(minion_id, load, now_ms, again=started):
            context.log.info(
                "%s waited for this minion, and is sent again",
                load.get("fun"),
                extra={"minion": minion_id, "jid": load["jid"]},
            )
