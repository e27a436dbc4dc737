"""Resolves a target to the accepted minions from which a job expects returns. Each minion decides for itself whether it
runs the job.

``authorise`` alone calls these functions: it knows whose target it is, and which minions that sender may look into.
Source: docs/protocol.md#target-types
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote

from saltern.kit.process.cpu_limit import CpuLimit, cpu_limit
from saltern.mworker.linear_regex import linear_regex
from saltern.mworker.worker_context import WorkerContext
from statecore.model.errors import TargetError
from statecore.targeting.match import (
    SALTS_READING,
    UNKNOWN,
    Expand,
    Reading,
    Subject,
    compile_target,
    expanded_target,
    listed_ids,
)

#: Target types that need only minion ids.
_BY_ID = frozenset({"glob", "pcre", "list"})

#: Target types whose expressions can contain lists of names.
_OF_WORDS = frozenset({"compound", "compound_pillar_exact", "nodegroup"})

#: Target types that need pillar, and the parts of a compound expression that need pillar.
_BY_PILLAR = frozenset({"pillar", "pillar_pcre", "pillar_exact", "nodegroup"})
_ASKS_FOR_PILLAR = re.compile(r"[IJN].?@")

#: Target types, and words of a compound expression, with regular expressions or pillar.
_PATTERNS = frozenset({"pcre", "grain_pcre", "pillar", "pillar_pcre", "pillar_exact"})
_IS_PATTERN = re.compile(r"[EPIJN].?@")


@dataclass(frozen=True)
class Resolved:
    """The minions that a target matches, and the ids in the target without an accepted key."""

    minions: tuple[str, ...]
    #: Names in a list target without an accepted key.
    missing: tuple[str, ...] = ()


def spelled(
    context: WorkerContext, tgt: object, tgt_type: str, seen: Collection[str] | None = None
) -> tuple[object, str]:
    """Return (target, target type) without the master's node groups and range expressions, which minions do not know:
    they are replaced by their definitions and host names. Raises TargetError.

    ``seen``: as of ``resolve``.
    """
    return expanded_target(tgt, tgt_type, context.options.nodegroups, _ranges(context, seen))


def _ranges(context: WorkerContext, seen: Collection[str] | None) -> Expand:
    """Return a function that resolves a range expression by the range server, once for each expression, to those of its
    host names that are in ``seen`` (None: to all).
    """

    def expanded(expression: str) -> list[str]:
        names = expand(context.options.range_server, expression)
        return names if seen is None else [name for name in names if name in seen]

    return cache(expanded)


#: How targets of minions are read: they must not be able to keep a worker busy, or to read pillars of others by trying.
_PEERS_READING = Reading(linear_regex, literal_pillar=True)

#: Seconds of CPU time to compare a target with all minions.
_OPERATORS_SECONDS = 2.0
_PEERS_SECONDS = 1.0

#: Limits of a minion's target: characters, words of a compound target, characters of a word that is no list.
_MOST_CHARACTERS = 64 * 1024
_MOST_WORDS = 500
_LONGEST_WORD = 1000


def resolve(
    context: WorkerContext,
    tgt: object,
    tgt_type: str,
    delimiter: str = ":",
    *,
    peer: bool = False,
    seen: Collection[str] | None = None,
    pillar_of: Collection[str] | None = None,
    only: str = "",
) -> Resolved:
    """Return the accepted minions that match a target. Raises TargetError for an expression that cannot be parsed, and
    for one that takes too long.

    ``peer``: a minion wrote the target. Its size is then limited, its regular expressions are linear ones, and words
    about pillar compare the exact value. ``seen``: minions into which the sender may look; the pillar of every other
    minion counts as empty, and no address and no range expression matches it. None: every minion. ``pillar_of``: minions
    whose pillar counts, if these are others than ``seen``. ``only``: the one minion that is compared.
    """
    pillar_of = seen if pillar_of is None else pillar_of
    if peer:
        _check_size(tgt, tgt_type)
    accepted = context.store.minion_keys.accepted()
    if only:
        accepted = (only,) if only in accepted else ()
    ranges = _ranges(context, seen)
    if tgt_type == "range":
        tgt, tgt_type = spelled(context, tgt, tgt_type, seen)
    if tgt_type == "list":
        return _listed(tgt, accepted)
    by_id = tgt_type in _BY_ID
    grains = {} if by_id else context.store.cache.all_grains()
    asked = not by_id and (tgt_type in _BY_PILLAR or _ASKS_FOR_PILLAR.search(str(tgt)) is not None)
    pillars = context.pillars() if asked and (pillar_of is None or pillar_of) else {}
    if pillar_of is not None:
        pillars = {name: pillars[name] for name in pillar_of if name in pillars}
    # Asked before the limit begins, because the range server is reached over the network.
    listed = _missing(context, tgt, tgt_type, accepted, ranges)
    nothing: Mapping[str, object] = {}
    try:
        with cpu_limit(_PEERS_SECONDS if peer else _OPERATORS_SECONDS):
            matcher = compile_target(
                tgt,
                tgt_type,
                delimiter=delimiter,
                nodegroups=context.options.nodegroups,
                ranges=ranges,
                reading=_PEERS_READING if peer else SALTS_READING,
            )
            if by_id:
                return Resolved(tuple(name for name in accepted if matcher(Subject(name, {}))))
            found = [
                name
                for name in accepted
                if matcher(
                    Subject(name, grains.get(name, UNKNOWN), pillars.get(name, nothing), seen is None or name in seen)
                )
            ]
    except CpuLimit as error:
        raise TargetError(
            f"the target {str(tgt)[:100]!r} ({tgt_type}) takes too long to compare with {len(accepted)} minions:"
            " write its expressions more simply"
        ) from error
    return Resolved(tuple(found), listed)


def is_meant(context: WorkerContext, minion_id: str, tgt: object, tgt_type: str) -> bool:
    """Return whether a target that a minion wrote matches one minion, by that minion's own grains and pillar. Raises
    TargetError.
    """
    return minion_id in resolve(context, tgt, tgt_type, peer=True, pillar_of=(minion_id,), only=minion_id).minions


def reads_patterns(tgt: object, tgt_type: str) -> bool:
    """Return whether a target makes minions evaluate regular expressions or their pillar when they compare it with themselves.

    Minions do that in their main process and without the limits of ``resolve``.
    """
    return tgt_type in _PATTERNS or (tgt_type in _OF_WORDS and _IS_PATTERN.search(str(tgt)) is not None)


def _check_size(tgt: object, tgt_type: str) -> None:
    """Raise TargetError if a target has more characters or words than a target that a minion writes may have."""
    if tgt_type == "list":
        return
    words = [str(word) for word in tgt] if isinstance(tgt, list | tuple) else [tgt] if isinstance(tgt, str) else []
    size = sum(map(len, words))
    if size > _MOST_CHARACTERS:
        raise TargetError(f"a target of {size} characters; {_MOST_CHARACTERS} are allowed")
    parts = [part for word in words for part in word.split()] if tgt_type in _OF_WORDS else words
    if len(parts) > _MOST_WORDS:
        raise TargetError(f"a target of {len(parts)} words; {_MOST_WORDS} are allowed")
    if any(len(part) > _LONGEST_WORD and not part.lstrip("(").startswith("L@") for part in parts):
        raise TargetError(f"a word of a target has more than {_LONGEST_WORD} characters")


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
