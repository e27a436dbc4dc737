"""Whether a target expression matches this minion (Salt's ``match`` module)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import InvocationError
from statecore.model.values import DELIMITER
from statecore.targeting.match import Subject, matches, users_matcher

ALIASES = {"list": "list_"}


def _matches(
    ctx: Context, tgt: str | Sequence[str], tgt_type: str, minion_id: str | None = None, delimiter: str = DELIMITER
) -> bool:
    if (own := users_matcher(ctx.tables.get("matchers", {}), tgt_type)) is not None:
        return own(tgt, minion_id=minion_id, delimiter=delimiter)
    subject = Subject(
        id=minion_id or str(ctx.opts.get("id", "")),
        grains=ctx.grains,
        pillar=ctx.pillar,
    )
    return matches(tgt, tgt_type, subject, delimiter=delimiter, nodegroups=ctx.opts.get("nodegroups") or {})


def glob(ctx: Context, tgt: str, minion_id: str | None = None) -> bool:
    """Whether the minion's id matches a glob."""
    return _matches(ctx, tgt, "glob", minion_id)


def pcre(ctx: Context, tgt: str, minion_id: str | None = None) -> bool:
    """Whether the minion's id matches a regular expression."""
    return _matches(ctx, tgt, "pcre", minion_id)


def list_(ctx: Context, tgt: str | Sequence[str], minion_id: str | None = None) -> bool:
    """Whether the minion's id is in a list."""
    return _matches(ctx, tgt, "list", minion_id)


def grain(ctx: Context, tgt: str, delimiter: str = DELIMITER) -> bool:
    """Whether a grain matches a glob: ``os:Debian``."""
    return _matches(ctx, tgt, "grain", delimiter=delimiter)


def grain_pcre(ctx: Context, tgt: str, delimiter: str = DELIMITER) -> bool:
    """Whether a grain matches a regular expression."""
    return _matches(ctx, tgt, "grain_pcre", delimiter=delimiter)


def pillar(ctx: Context, tgt: str, delimiter: str = DELIMITER) -> bool:
    """Whether a pillar value matches a glob."""
    return _matches(ctx, tgt, "pillar", delimiter=delimiter)


def pillar_pcre(ctx: Context, tgt: str, delimiter: str = DELIMITER) -> bool:
    """Whether a pillar value matches a regular expression."""
    return _matches(ctx, tgt, "pillar_pcre", delimiter=delimiter)


def ipcidr(ctx: Context, tgt: str) -> bool:
    """Whether the minion has an address in a network."""
    return _matches(ctx, tgt, "ipcidr")


def compound(ctx: Context, tgt: str, minion_id: str | None = None) -> bool:
    """Whether a compound expression matches: ``G@os:Debian and not web*``."""
    return _matches(ctx, tgt, "compound", minion_id)


def filter_by(
    ctx: Context,
    lookup: Mapping[str, Any],
    tgt_type: str = "compound",
    minion_id: str | None = None,
    merge: Mapping[str, Any] | None = None,
    merge_lists: bool = False,
    default: str = "default",
) -> Any:
    """The first entry of a table whose key, a target, matches; ``merge`` is merged over it. None when none does."""
    found = next((value for tgt, value in lookup.items() if _matches(ctx, tgt, tgt_type, minion_id)), None)
    if found is None:
        found = lookup.get(default)
    if merge is None or found is None:
        return found
    return ctx.call("slsutil.merge", found, merge, "recurse", merge_lists=merge_lists)


def search_by(
    ctx: Context, lookup: Mapping[str, Sequence[str]], tgt_type: str = "compound", minion_id: str | None = None
) -> list[str] | None:
    """The names in a table of lists of targets of which one matches; None when none does."""
    found = [
        name for name, targets in lookup.items() if any(_matches(ctx, tgt, tgt_type, minion_id) for tgt in targets)
    ]
    return found or None


def ifelse(ctx: Context, *foo_bar: Any, minion_id: str | None = None, tgt_type: str = "compound", **kwargs: Any) -> Any:
    """Pairs of target and value, and a last value: that of the first target that matches, else the last. Targets may be
    true and false. Raises InvocationError without the last value."""
    if len(foo_bar) % 2 == 0:
        raise InvocationError("The ifelse function must have an odd number of arguments!")
    pairs, last = foo_bar[: len(foo_bar) // 2 * 2], foo_bar[len(foo_bar) // 2 * 2 :]
    for tgt, value in zip(pairs[::2], pairs[1::2], strict=True):
        if tgt if isinstance(tgt, bool) else _matches(ctx, tgt, tgt_type, minion_id):
            return value
    return last[0] if last else None
