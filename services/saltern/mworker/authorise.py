"""Resolves the targets of requests: the one place that compares a target from outside with minions.

A sender (an operator, a user or a minion) sees of a minion that its rules do not cover what everybody sees who may target
anything: its id and its grains. The pillar of such a minion counts as empty, and no address and no range expression
matches it, in a publication as in any other use of a target: otherwise the sender could read the pillar of every minion
by asking which minions match. No other module calls ``targets.resolve`` (``tests/test_architecture.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from saltern.kit.links.control import ControlError
from saltern.kit.links.rights import EVERYWHERE, Call, Decision, Kind, Rights, covered_targets, decide
from saltern.kit.process.cpu_limit import CpuLimit, cpu_limit
from saltern.mworker.senders import Sender, Way
from saltern.mworker.targets import Resolved, is_meant, reads_patterns, resolve, spelled
from saltern.mworker.worker_context import WorkerContext
from statecore.model.errors import TargetError

#: Seconds of CPU time to compare a request with the expressions of an access list.
_RULES_SECONDS = 1.0

#: Target type of the runner match.compound_matches: words about pillar compare exact values.
_EXACT = "compound_pillar_exact"


class Reach(NamedTuple):
    """What the rules allow of a publication."""

    #: The minions that the target matches; None: it was not resolved.
    target: Resolved | None
    #: The minions to which the job goes by name; None: the target itself is published.
    within: Collection[str] | None


@dataclass(frozen=True)
class Destination:
    """Where a job goes: the minions that its target matches, and the target as it is published, without the master's node
    groups and ranges.
    """

    target: Resolved
    tgt: object
    tgt_type: str
    #: The job goes to the minions by name: they would compare the target with what the sender may not look into, or with
    #: newer grains than those by which it was allowed.
    by_name: bool


class NotAllowed(Exception):
    """Raised when a sender may not publish functions to a target. The message lists the names of these functions."""

    def __init__(self, functions: Sequence[str]) -> None:
        super().__init__(", ".join(functions))


def decided(rights: Rights, kind: Kind, calls: Sequence[Call]) -> Decision:
    """Return the Decision about a request: for each call the targets on which the sender's rights allow it.

    Raises ControlError if the expressions of the access list take too long.
    """
    try:
        with cpu_limit(_RULES_SECONDS):
            return decide(rights, kind, calls)
    except CpuLimit as error:
        raise ControlError(
            "AuthorizationError",
            f"the expressions of option {rights.option} take too long with this request: write them more simply",
        ) from error


def covered(context: WorkerContext, rights: Rights) -> frozenset[str] | None:
    """Return the ids of the accepted minions that the sender's rules cover; None: every minion."""
    targets = covered_targets(rights)
    if EVERYWHERE in targets:
        return None
    return frozenset().union(*map(matching_of(context, rights), targets))


def targeted(context: WorkerContext, sender: Sender, tgt: object, tgt_type: str, delimiter: str = ":") -> Resolved:
    """Return the accepted minions that a sender's target matches, as far as the sender may look into them.

    Raises ControlError with the name TargetError.
    """
    # A minion that may start match.compound_matches (peer_run) compares exact values of a minion that its own signing
    # policies name.
    unlimited = sender.way is Way.MINION and tgt_type == _EXACT
    seen = None if unlimited else covered(context, sender.rights)
    try:
        tgt, tgt_type = spelled(context, tgt, tgt_type, seen)
        return resolve(context, tgt, tgt_type, delimiter, seen=seen)
    except TargetError as error:
        raise ControlError("TargetError", str(error)) from error


def published_to(
    context: WorkerContext,
    sender: Sender,
    tgt: object,
    tgt_type: str,
    delimiter: str = ":",
    *,
    reach: Reach,
) -> Destination:
    """Return the Destination of a publication of which the rules allow ``reach``. Raises ControlError with the name
    TargetError.
    """
    known, within = reach
    seen = covered(context, sender.rights) if within is None and known is None else within
    try:
        tgt, tgt_type = spelled(context, tgt, tgt_type, seen)
        found = resolve(context, tgt, tgt_type, delimiter, seen=seen) if known is None else known
    except TargetError as error:
        raise ControlError("TargetError", str(error)) from error
    if within is not None:
        found = Resolved(tuple(name for name in found.minions if name in within), found.missing)
    return Destination(found, tgt, tgt_type, by_name=seen is not None)


def offering(context: WorkerContext, tgt: object, tgt_type: str) -> Resolved:
    """Return the accepted minions that the target of a minion's request for mine data matches. Raises TargetError.

    No pillar matches, so that the sender cannot find out the pillar of other minions.
    """
    return resolve(context, tgt, tgt_type, peer=True, pillar_of=())


def is_offered(context: WorkerContext, minion_id: str, tgt: object, tgt_type: str) -> bool:
    """Return whether a target that another minion wrote (``allow_tgt`` of its mine) matches a minion, by the minion's own
    grains and pillar. Raises TargetError.
    """
    return is_meant(context, minion_id, tgt, tgt_type)


def reached(
    context: WorkerContext,
    rights: Rights,
    calls: Sequence[Call],
    tgt: object,
    tgt_type: str,
    delimiter: str = ":",
    *,
    peer: bool = False,
) -> Reach:
    """Return what the rules allow of a publication. Raises NotAllowed, and ControlError for a target that cannot be parsed.

    Rights come first: a target is compared only for a sender that may publish these functions somewhere. The pillar of
    minions on which the sender may not publish them counts as empty, and no address matches them: the answer is then the
    same, whatever they hold. ``peer``: the sender is a minion.
    """
    decision = decided(rights, Kind.PUBLISH, calls)
    if decision.refused:
        raise NotAllowed(decision.refused)
    everywhere = decision.everywhere
    if everywhere and not peer:
        return Reach(None, None)
    matching = matching_of(context, rights)
    try:
        within_reach = None if everywhere else decision.reach(matching)
        if not peer:
            tgt, tgt_type = spelled(context, tgt, tgt_type, within_reach)
        target = resolve(context, tgt, tgt_type, delimiter, peer=peer, seen=within_reach)
    except TargetError as error:
        raise ControlError("TargetError", str(error)) from error
    meant = frozenset(target.minions)
    if refused := decision.refused_on(meant, matching):
        raise NotAllowed(refused)
    # Minions compare a target in their main process. Expressions of a minion that could keep them busy, or that read
    # their pillar in Salt's way, are not sent to them: the job goes to the minions by name.
    by_name = not everywhere or reads_patterns(tgt, tgt_type)
    return Reach(target, meant if by_name else None)


def matching_of(context: WorkerContext, rights: Rights) -> Callable[[str], frozenset[str]]:
    """Return a function that resolves the targets in the sender's rules, each once. They are the operator's own: every
    minion is compared with its whole pillar.
    """

    @cache
    def matching(target: str) -> frozenset[str]:
        try:
            return frozenset(resolve(context, target, "compound").minions)
        except TargetError as error:
            said = "%s: the target %s is not understood and allows nothing: %s"
            context.log.error(said, rights.option, target, error)
            return frozenset()

    return matching
