"""Tests whether a target matches this minion: Salt's ``match`` execution module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CallFailed, InvocationError, TargetError
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
    try:
        return matches(tgt, tgt_type, subject, delimiter=delimiter, nodegroups=ctx.opts.get("nodegroups") or {})
    except TargetError as error:
        # In Salt a wrong target matches nobody.
        raise CallFailed(str(error)) from error


def glob(ctx: Context, tgt: str, minion_id: str | None = None) -> bool:
    """Return whether the minion's id matches a glob."""
    return _matches(ctx, tgt, "glob", minion_id)


def pcre(ctx: Context, tgt: str, minion_id: str | None = None) -> bool:
    """Return whether the minion's id matches a regular expression."""
    return _matches(ctx, tgt, "pcre", minion_id)


def list_(ctx: Context, tgt: str | Sequence[str], minion_id: str | None = None) -> bool:
    """Return whether the minion's id is in a list, or in a text with commas."""
    return _matches(ctx, tgt, "list", minion_id)


def grain(ctx: Context, tgt: str, delimiter: str = DELIMITER) -> bool:
    """Return whether a grain of this minion matches a glob. Example of a target: ``os:Debian``."""
    return _matches(ctx, tgt, "grain", delimiter=delimiter)


def grain_pcre(ctx: Context, tgt: str, delimiter: str = DELIMITER) -> bool:
    """Return whether a grain of this minion matches a regular expression. Example of a target: ``os:Debian|Ubuntu``."""
    return _matches(ctx, tgt, "grain_pcre", delimiter=delimiter)


def pillar(ctx: Context, tgt: str, delimiter: str = DELIMITER) -> bool:
    """Return whether a pillar value of this minion matches a glob. Example of a target: ``role:web*``."""
    return _matches(ctx, tgt, "pillar", delimiter=delimiter)


def pillar_pcre(ctx: Context, tgt: str, delimiter: str = DELIMITER) -> bool:
    """Return whether a pillar value of this minion matches a regular expression. Example of a target:
    ``role:web|db``.
    """
    return _matches(ctx, tgt, "pillar_pcre", delimiter=delimiter)


def ipcidr(ctx: Context, tgt: str) -> bool:
    """Return whether the minion has the address ``tgt``, or an address in the network ``tgt``."""
    return _matches(ctx, tgt, "ipcidr")


def compound(ctx: Context, tgt: str, minion_id: str | None = None) -> bool:
    """Return whether a compound target matches this minion. Example of a target: ``G@os:Debian and not web*``."""
    return _matches(ctx, tgt, "compound", minion_id)


def filter_by(
    ctx: Context,
    lookup: Mapping[str, object],
    tgt_type: str = "compound",
    minion_id: str | None = None,
    merge: Mapping[str, object] | None = None,
    merge_lists: bool = False,
    default: str = "default",
) -> object:
    """Return the value of the first key in the map ``lookup`` that is a target which matches this minion. If none
    matches, return the value of the key ``default``, or None.

    merge
        map to merge over the entry
    """
    found = next((value for tgt, value in lookup.items() if _matches(ctx, tgt, tgt_type, minion_id)), None)
    if found is None:
        found = lookup.get(default)
    return _merged(ctx, found, merge, merge_lists)


def _merged(ctx: Context, found: object, merge: Mapping[str, object] | None, merge_lists: bool) -> object:
    if merge is None or found is None:
        return found
    return ctx.call("slsutil.merge", found, merge, "recurse", merge_lists=merge_lists)


def search_by(
    ctx: Context, lookup: Mapping[str, Sequence[str]], tgt_type: str = "compound", minion_id: str | None = None
) -> list[str] | None:
    """Return the keys of the map ``lookup`` (name to list of targets) that have at least one target which matches this
    minion. Return None if there is none.
    """
    found = [
        name for name, targets in lookup.items() if any(_matches(ctx, tgt, tgt_type, minion_id) for tgt in targets)
    ]
    return found or None


def ifelse(
    ctx: Context,
    *args: Any,
    tgt_type: str = "compound",
    minion_id: str | None = None,
    merge: Mapping[str, object] | None = None,
    merge_lists: bool = False,
) -> object:
    """Return the value that follows the first matching target. The arguments are pairs of target and value, and at the
    end a default value.

    A target may also be True or False. Raise InvocationError if the default value is missing.

    merge, merge_lists
        map to merge over the returned map; True: lists are joined, not replaced
    """
    if len(args) % 2 == 0:
        raise InvocationError("The ifelse function must have an odd number of arguments!")
    *pairs, found = args
    for tgt, value in zip(pairs[::2], pairs[1::2], strict=True):
        if tgt if isinstance(tgt, bool) else _matches(ctx, tgt, tgt_type, minion_id):
            found = value
            break
    return _merged(ctx, found, merge, merge_lists)
