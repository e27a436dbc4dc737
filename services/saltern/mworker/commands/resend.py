"""Sends waiting jobs (``salt --when-back``) again to a stock minion that is back.

Saltern's own minions ask for such jobs themselves (``_missed``). A stock minion loses every publication before its
subscription arrives; at its start it signs in, then subscribes, then fires its start event. So the start event sends
again every job that the minion has not taken, and any other request only the jobs that were published while the minion
was known to be away.
"""

from __future__ import annotations

import time

from saltern.mworker.worker_context import WorkerContext


def heard_of(context: WorkerContext, minion_id: str) -> None:
    """Record that the minion sent a request. If it is a stock minion, publish the jobs that wait for it again.

    Without waiting jobs this takes one round trip to Redis.
    """
    if context.store.presence.arrived(minion_id, int(time.time() * 1000)):
        send_waiting(context, minion_id)


def send_waiting(context: WorkerContext, minion_id: str, *, started: bool = False) -> None:
    """Publish again, to this minion alone, the jobs that wait for it.

    ``started``: the minion has just started, so all its waiting jobs are published; otherwise only those that were published
    while the minion was known to be away.
    """
    now_ms = int(time.time() * 1000)
    for load in context.store.jobs.waiting(minion_id, now_ms, offline=not started):
        if context.store.jobs.resend(minion_id, load, now_ms, again=started):
            context.log.info(
                "%s waited for this minion, and is sent again",
                load.get("fun"),
                extra={"minion": minion_id, "jid": load["jid"]},
            )
