"""``salt.utils.state``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict


class StateReturn(TypedDict, total=False):
    """The return of a state function."""

    name: str
    result: bool | None
    changes: dict[str, object]
    comment: str | list[str]


def gen_tag(low: Mapping[str, object]) -> str:
    """The tag of a low chunk in a running dictionary."""
    return f"{low['state']}_|-{low['__id__']}_|-{low['name']}_|-{low['fun']}"


def merge_subreturn(original_return: StateReturn, sub_return: StateReturn, subkey: str | None = None) -> StateReturn:
    """Merge a sub-state's return into a state's return: its failure, its comment, and its changes under its name."""
    if sub_return["result"] is False:
        original_return["result"] = False
    added = sub_return["comment"] if isinstance(sub_return["comment"], list) else [sub_return["comment"]]
    comment = original_return.setdefault("comment", [])
    if isinstance(comment, list):
        comment.extend(added)
    else:
        original_return["comment"] = "\n".join([*([comment] if comment else []), *added])
    if sub_return["changes"]:
        original_return.setdefault("changes", {})[subkey or sub_return["name"]] = sub_return["changes"]
    return original_return
