"""``salt.utils.state`` for users' state modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict


class StateReturn(TypedDict, total=False):
    """The map that a state function returns: name, result, changes and comment."""

    name: str
    result: bool | None
    changes: dict[str, object]
    comment: str | list[str]


def gen_tag(low: Mapping[str, object]) -> str:
    """Return the tag of a low chunk (``module_|-id_|-name_|-function``), its key in the running dictionary."""
    return f"{low['state']}_|-{low['__id__']}_|-{low['name']}_|-{low['fun']}"


def merge_subreturn(original_return: StateReturn, sub_return: StateReturn, subkey: str | None = None) -> StateReturn:
    """Merge the return of a sub-state (a map with name, result, changes, comment) into the return of a state, and
    return the latter, which is changed.

    A failed result and the comment are taken over. The changes are added under ``subkey``, or under the sub-state's
    name.
    """
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
