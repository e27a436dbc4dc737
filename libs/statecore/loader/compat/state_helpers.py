"""Private helpers of Salt's state modules that custom states import, such as ``salt.states.git._fail``.

Each helper (except ``check_user``) takes the map that a state function returns, sets its result and comment, and
returns the same map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecore.loader.current_context import context_of

_Return = dict[str, Any]


def _made(comments: Sequence[str] | None, already: str) -> str:
    """Return the sentence that lists the changes ``comments``, to be appended to a comment; "" without changes."""
    if not comments:
        return ""
    return f"\n\nChanges {already}made: {'. '.join(comments)}{'.' if len(comments) > 1 else ''}"


def _conditional() -> str:
    return "that would be " if context_of("salt.states.git").test else ""


def fail(ret: _Return, msg: str, comments: Sequence[str] | None = None) -> _Return:
    """Set the result False and the comment ``msg`` in a state's return, and return it. ``comments``: changes that were
    made before the failure.
    """
    ret["result"] = False
    ret["comment"] = msg + _made(comments, "already ")
    return ret


def neutral_test(ret: _Return, comment: str) -> _Return:
    """Set the result None (of test mode) and a comment in a state's return, and return it."""
    ret["result"] = None
    ret["comment"] = comment
    return ret


def up_to_date(
    ret: _Return, target: str, comments: Sequence[str] | None = None, local_changes: bool = False
) -> _Return:
    """Set the comment "Repository ... is up-to-date" in a state's return, and return it.

    ``local_changes``: the repository at ``target`` has changes that are not committed. ``comments``: changes that were
    made.
    """
    uncommitted = ", but with uncommitted changes. Set 'force_reset' to True to purge uncommitted changes."
    ret["comment"] = f"Repository {target} is up-to-date{uncommitted if local_changes else ''}"
    ret["comment"] += _made(comments, _conditional()) if comments else ""
    return ret


def already_cloned(
    ret: _Return, target: str, branch: str | None = None, comments: Sequence[str] | None = None
) -> _Return:
    """Set the result True and the comment "Repository already exists at ..." in a state's return, and return it.

    ``branch`` is the branch that is checked out; ``comments``: changes that were made.
    """
    ret["result"] = True
    ret["comment"] = f"Repository already exists at {target}"
    ret["comment"] += f" and is checked out to branch '{branch}'" if branch else ""
    ret["comment"] += _made(comments, _conditional()) if comments else ""
    return ret


def error(ret: _Return, err_msg: str) -> _Return:
    """Set the result False and the comment ``err_msg`` in a state's return, and return it."""
    return fail(ret, err_msg)


def check_user(user: object, group: object) -> str:
    """Return a sentence that names the user or group that the host does not have; "" if both exist, and in test
    mode.
    """
    ctx = context_of("salt.states.file._check_user")
    wrong = f"User {user} is not available " if user and ctx.call("file.user_to_uid", user) == "" else ""
    if group and ctx.call("file.group_to_gid", group) == "":
        wrong += f"Group {group} is not available"
    return "" if ctx.test else wrong


#: Name in ``salt.states`` -> helper.
HELPERS: Mapping[str, Callable[..., Any]] = {
    "file._check_user": check_user,
    "file._error": error,
    "git._already_cloned": already_cloned,
    "git._fail": fail,
    "git._neutral_test": neutral_test,
    "git._uptodate": up_to_date,
}
