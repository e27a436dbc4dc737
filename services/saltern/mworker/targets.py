"""Resolves a target to the accepted minions from which a job expects returns. Each minion decides for itself whether it
runs the job.

Source: docs/protocol.md#target-types
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from urllib.parse import quote

from saltern.mworker.worker_context import WorkerContext
from statecore.model.errors import TargetError
from statecore.targeting.match import UNKNOWN, Expand, Subject, compile_target, expanded_target, listed_ids

#: Target types that need only minion ids.
_BY_ID = frozenset({"glob", "pcre", "list"})

#: Target types whose expressions can contain lists of names.
_OF_WORDS = frozenset({"compound", "compound_pillar_exact", "nodegroup"})

#: Target types that need pillar, and the parts of a compound expression that need pillar.
_BY_PILLAR = frozenset({"pillar", "pillar_pcre", "pillar_exact", "nodegroup"})
_ASKS_FOR_PILLAR = re.compile(r"[IJN].?@")


@dataclass(frozen=True)
class Resolved:
    """The minions that a target matches, and the ids in the target without an accepted key."""

    minions: tuple[str, ...]
    #: Names in a list target without an accepted key.
    missing: tuple[str, ...] = ()


def spelled(context: WorkerContext, tgt: object, tgt_type: str) -> tuple[object, str]:
    """Return (target, target type) without the master's node groups and ranges, which minions do not know. Raises
    TargetError.
    """
    return expanded_target(tgt, tgt_type, context.options.nodegroups, _ranges(context))


def _ranges(context: WorkerContext) -> Expand:
    """Return a function that resolves a range expression by the range server, once for each expression."""
    return cache(partial(expand, context.options.range_server))


def resolve(
    context: WorkerContext, tgt: object, tgt_type: str, delimiter: str = ":", *, by_pillar: bool = True
) -> Resolved:
    """Return the accepted minions that match a target. Raises TargetError for an expression that cannot be parsed.

    Without ``by_pillar`` no pillar matches, so that the sender cannot find out the pillar of other minions.
    """
    accepted = context.store.minion_keys.accepted()
    ranges = _ranges(context)
    if tgt_type == "range":
        tgt, tgt_type = spelled(context, tgt, tgt_type)
    if tgt_type == "list":
        return _listed(tgt, accepted)
    matcher = compile_target(tgt, tgt_type, delimiter=delimiter, nodegroups=context.options.nodegroups, ranges=ranges)
    if tgt_type in _BY_ID:
        return Resolved(tuple(name for name in accepted if matcher(Subject(name, {}))))
    grains = context.store.cache.all_grains()
    asked = tgt_type in _BY_PILLAR or _ASKS_FOR_PILLAR.search(str(tgt)) is not None
    pillars = context.pillars() if by_pillar and asked else {}
    nothing: Mapping[str, Any] = {}
    found = [name for name in accepted if matcher(Subject(name, grains.get(name, UNKNOWN), pillars.get(name, nothing)))]
    return Resolved(tuple(found), _missing(context, tgt, tgt_type, accepted, ranges))


def _missing(
    context: WorkerContext, tgt: object, tgt_type: str, accepted: Sequence[str], ranges: Expand
) -> tuple[str, ...]:
    """Return the names in the lists of a compound target that have no accepted key."""
    if tgt_type not in _OF_WORDS:
        return ()
    names = dict.fromkeys(listed_ids(tgt, tgt_type, context.options.nodegroups, ranges))
    known = set(accepted) if names else set()
    return tuple(name for name in names if name not in known)


def _listed(tgt: object, accepted: Sequence[str]) -> Resolved:
    if not isinstance(tgt, str | list | tuple):
        raise TargetError(f"a list target is names with commas, or a list of names, not {tgt!r}")
    names = [name.strip() for name in tgt.split(",")] if isinstance(tgt, str) else [str(name) for name in tgt]
    wanted = dict.fromkeys(name for name in names if name)
    known = set(accepted)
    return Resolved(
        tuple(name for name in wanted if name in known),
        tuple(name for name in wanted if name not in known),
    )


#: Seconds to wait for the range server; the worker is blocked meanwhile.
_RANGE_TIMEOUT = 5.0

#: Largest answer of the range server, bytes.
_MOST_BYTES = 4 * 1024 * 1024


def expand(server: str, expression: str) -> list[str]:
    """Return the host names of a range expression in the order of the range server, each once.

    ``server``: ``host:port``. Raises TargetError.
    """
    if not server:
        raise TargetError(
            f"the range '{expression}' cannot be resolved: no range server is given (option range_server)"
        )
    # Imported here: few masters have a range server, and the module takes a megabyte.
    import http.client

    try:
        link = http.client.HTTPConnection(server, timeout=_RANGE_TIMEOUT)
        try:
            link.request("GET", f"/range/list?{quote(expression)}")
            answer = link.getresponse()
            wrong, body = answer.getheader("RangeException"), answer.read(_MOST_BYTES + 1)
        finally:
            link.close()
    except (OSError, http.client.HTTPException) as error:
        raise TargetError(f"the range server {server} (option range_server) does not answer: {error!r}") from error
    if wrong or answer.status != http.client.OK:
        raise TargetError(
            f"the range server {server} refuses '{expression}': {wrong or f'HTTP status {answer.status}'}"
        )
    if len(body) > _MOST_BYTES:
        raise TargetError(f"the range server {server} answers more than {_MOST_BYTES} bytes to '{expression}'")
    return list(dict.fromkeys(body.decode("utf-8", "replace").split()))
