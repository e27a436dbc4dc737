"""The command by which the reqserver reports which minions have an open connection to port 4506, and whose last
connection has ended.
"""

from __future__ import annotations

from collections.abc import Mapping

from saltern.kit.links.control import ControlError
from saltern.mworker.senders import Sender
from saltern.mworker.worker_context import WorkerContext


def report(context: WorkerContext, sender: Sender, fields: Mapping[str, object]) -> None:
    """Record for the presence of minions whose last connection ended, and which stock minions have an open connection.

    ``left`` maps a minion id to the seconds that passed between the end of its connection and the time ``at`` (seconds
    since 1970); ``connected`` lists minion ids. Minions of Saltern send messages regularly, so their open connections
    are ignored: a process that hangs may still have one.
    """
    left, connected, at = fields.get("left"), fields.get("connected"), fields.get("at")
    if not isinstance(left, Mapping) or not isinstance(connected, list) or not isinstance(at, int | float):
        raise ControlError("InvocationError", "left must be a map, connected a list, and at a time")
    known = set(context.store.minion_keys.accepted())
    for minion, seconds in left.items():
        if minion in known and isinstance(seconds, int | float):
            context.store.presence.left(minion, int((at - seconds) * 1000))
    context.store.presence.connected([minion for minion in connected if minion in known], int(at * 1000))
