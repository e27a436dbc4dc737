"""Compares a publish request with a sender's rights, and finds the minions that the request may reach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from saltern.kit.links.control import ControlError
from saltern.kit.links.rights import Call, Decision, Kind, Rights, decide
from saltern.kit.process.cpu_limit import CpuLimit, cpu_limit
from saltern.mworker.targets import Resolved, reads_patterns, resolve, spelled
from saltern.mworker.worker_context import WorkerContext
from statecore.model.errors import TargetError

#: Seconds of CPU time to compare a request with the expressions of an access list.
_RULES_SECONDS = 1.0


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


def reached(
    context: WorkerContext,
    rights: Rights,
    calls: Sequence[Call],
    tgt: object,
    tgt_type: str,
    delimiter: str = ":",
    *,
    peer: bool = False,
) -> tuple[Resolved | None, frozenset[str] | None]:
    """Return (the minions that the target matches, the minions to which the job goes by name).

    The first is None if the target was not resolved, the second if the target itself is published. Raises NotAllowed, and
    ControlError for a target that cannot be parsed.

    Rights come first: a target is compared only for a sender that may publish these functions somewhere. The pillar of
    minions on which the sender may not publish them counts as empty: the answer is then the same, whatever they hold.
    ``peer``: the sender is a minion.
    """
    decision = decided(rights, Kind.PUBLISH, calls)
    if decision.refused:
        raise NotAllowed(decision.refused)
    everywhere = decision.everywhere
    if everywhere and not peer:
        return None, None

    @cache
    def matching(target: str) -> frozenset[str]:
        try:
            return frozenset(resolve(context, target, "compound").minions)
        except TargetError as error:
            said = "%s: the target %s is not understood and allows nothing: %s"
            context.log.error(said, rights.option, target, error)
            return frozenset()

    try:
        if not peer:
            tgt, tgt_type = spelled(context, tgt, tgt_type)
        within_reach = None if everywhere else decision.reach(matching)
        target = resolve(context, tgt, tgt_type, delimiter, peer=peer, pillar_of=within_reach)
    except TargetError as error:
        raise ControlError("TargetError", str(error)) from error
    meant = frozenset(target.minions)
    if refused := decision.refused_on(meant, matching):
        raise NotAllowed(refused)
    # Minions compare a target in their main process. Expressions of a minion that could keep them busy, or that read
    # their pillar in Salt's way, are not sent to them: the job goes to the minions by name.
    by_name = not everywhere or reads_patterns(tgt, tgt_type)
    return target, meant if by_name else None
