"""``salt.utils.state`` for users' state modules: tags of low chunks, and helpers for the returns of states and of state
runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from statecore.model.errors import CommandError


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


def check_result(running: object, recurse: bool = False, highstate: object = None) -> bool:
    """Return whether no state of a run's return (state ID to result) failed. {} and other values count as failed.

    ``recurse``: the map is a part of a result. ``highstate`` is ignored: a failure stays one if an ``onfail`` requisite
    handled it.
    """
    if not isinstance(running, dict) or not running:
        return False
    for name, found in running.items():
        if not recurse and not isinstance(found, list if name == "__extend__" else dict):
            return False
        if isinstance(found, dict):
            if found.get("result", True) is False:
                return False
            if "result" not in found and not check_result(found, recurse=True):
                return False
    return True


def get_sls_opts(opts: Mapping[str, object], **kwargs: object) -> dict[str, object]:
    """Return a copy of options for a state run: ``saltenv`` and ``pillarenv`` are those of the keyword arguments.

    Raise CommandError for another saltenv if ``lock_saltenv`` is set.
    """
    found = dict(opts)
    saltenv = kwargs.get("saltenv")
    if saltenv is not None:
        if opts.get("lock_saltenv") and saltenv != opts.get("saltenv"):
            raise CommandError("lock_saltenv is enabled, saltenv cannot be changed")
        found["saltenv"] = str(saltenv)
    if "pillarenv" in kwargs or ("saltenv" in kwargs and opts.get("pillarenv_from_saltenv")):
        pillarenv = kwargs.get("pillarenv", saltenv)
        found["pillarenv"] = None if pillarenv is None else str(pillarenv)
    return found
