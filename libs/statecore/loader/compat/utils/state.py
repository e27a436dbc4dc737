"""``salt.utils.state``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def gen_tag(low: Mapping[str, Any]) -> str:
    """The tag of a low chunk in a running dictionary."""
    return f"{low['state']}_|-{low['__id__']}_|-{low['name']}_|-{low['fun']}"


def merge_subreturn(
    original_return: dict[str, Any], sub_return: Mapping[str, Any], subkey: str | None = None
) -> dict[str, Any]:
    """Merge a sub-state's return into a state's return: its failure, its comment, and its changes under its name."""
    if sub_return["result"] is False:
        original_return["result"] = False
    told = sub_return["comment"] if isinstance(sub_return["comment"], list) else [sub_return["comment"]]
    comment = original_return.setdefault("comment", [])
    if isinstance(comment, list):
        comment.extend(told)
    else:
        original_return["comment"] = "\n".join([*([comment] if comment else []), *told])
    if sub_return["changes"]:
        original_return.setdefault("changes", {})[subkey or sub_return["name"]] = sub_return["changes"]
    return original_return
