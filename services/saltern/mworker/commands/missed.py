"""Commands of Saltern's own minions: the request for jobs that they missed, and their reports that a job was delivered
or started ("signs").

A minion sends these commands only if the sign-in reply says that the master knows them
(``saltwire.handshake.OWN_COMMANDS``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from masterstore.life import MINION_SIGNS
from masterstore.lives import Sign, jid_ms
from saltern.mworker.worker_context import WorkerContext
from saltwire.jid import is_jid
from saltwire.pack import packb

#: Most jobs in one answer, and most bytes of their loads. The minion asks again for the rest.
_MOST_JOBS, _MOST_BYTES = 1000, 4 * 1024 * 1024

#: Most signs of one request; further ones are ignored.
_MOST_SIGNS = 1000


def missed(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> dict[str, object]:
    """Return the jobs since ``after`` (milliseconds since 1970) that this minion has not received and may still run,
    oldest first.

    Result: ``jobs``, loads with ``replay_until``; ``next``, value of ``after`` for the next request, 0 at the end;
    ``now``, the master's time in milliseconds. Raises StoreUnavailable.
    """
    after = load.get("after")
    now_ms = int(time.time() * 1000)
    since = after if isinstance(after, int) and not isinstance(after, bool) else 0
    found = context.store.jobs.missed(minion_id, since, now_ms, _MOST_JOBS)
    context.store.presence.seen(minion_id, now_ms)
    jobs: list[dict[str, object]] = []
    size = 0
    for job in found:
        size += len(packb(job))
        if jobs and size > _MOST_BYTES:
            break
        jobs.append(job)
    if jobs:
        context.log.info("missed %d jobs", len(jobs), extra={"minion": minion_id})
    rest = found[len(jobs) :]
    following = max(0, jid_ms(str(rest[0]["jid"])) - 1) if rest else 0
    return {"jobs": jobs, "next": following, "now": now_ms}


def job_signs(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> None:
    """Store the minion's reports about its jobs: ``signs`` is [{jid, sign (reached state), ms}]. Malformed reports are
    skipped.

    Raises StoreUnavailable; the minion then gets no acknowledgement and sends the reports again.
    """
    signs = load.get("signs")
    taken = list(_signs(signs[:_MOST_SIGNS] if isinstance(signs, list) else ()))
    if taken:
        context.store.jobs.sign(minion_id, taken, int(time.time() * 1000))


def _signs(signs: Iterable[object]) -> Iterator[Sign]:
    for one in signs:
        if not isinstance(one, Mapping) or str(one.get("sign")) not in MINION_SIGNS or not is_jid(one.get("jid")):
            continue
        ms = one.get("ms")
        if isinstance(ms, int) and not isinstance(ms, bool) and 0 < ms < 1 << 53:
            yield str(one["jid"]), str(one["sign"]), ms
