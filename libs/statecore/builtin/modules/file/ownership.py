"""Functions of the ``file`` module for owners, modes, file attributes (chattr) and SELinux contexts."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from statecore.builtin.modules.file.paths import existing, host_name
from statecore.builtin.modules.file.queries import stats
from statecore.host import file_attributes, selinux_contexts
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.content.special_attributes import SpecialAttributes
from statecore.host.rooted_path import lexists
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError


def uid_to_user(ctx: Context, uid: int) -> str:
    """Return the name of the user with a user id; the id as text if no user has it."""
    return ctx.host.user_name(int(uid))


def user_to_uid(ctx: Context, user: str | int | None) -> int | str:
    """Return the number (uid) of a user, "" if the host does not know the user."""
    try:
        return ctx.host.uid("root" if user is None else user)
    except HostError:
        return ""


def gid_to_group(ctx: Context, gid: str | int) -> str:
    """Return the name of the group with a group id, "" if the host does not know the group."""
    number = group_to_gid(ctx, gid)
    return ctx.host.group_name(number) if isinstance(number, int) else ""


def group_to_gid(ctx: Context, group: str | int | None) -> int | str:
    """Return the number (gid) of a group, "" for None and if the host does not know the group."""
    try:
        return "" if group is None else ctx.host.gid(group)
    except HostError:
        return ""


def lchown(ctx: Context, path: str, user: str | int | None, group: str | int | None) -> str | None:
    """Set owner and group of a file without following a symbolic link. Return None on success, else the reason as
    text.
    """
    real_path = ctx.host.path(path, follow=False)
    if not lexists(real_path):
        return "File not found"
    try:
        managed_file.set_attributes(ctx.host, real_path, Attributes(user or None, group or None))
    except HostError as error:
        return str(error)
    return None


def lsattr(ctx: Context, path: str) -> dict[str, list[str]] | None:
    """Return the file attributes (chattr) of a file: a map of the path to the list of attribute letters. Return None if
    the host has no ``lsattr``.
    """
    if ctx.host.which("lsattr") is None:
        return None
    real_path = existing(ctx, path)
    return {path: list(file_attributes.read(ctx.host, host_name(ctx, real_path)))}


def chattr(
    ctx: Context,
    *files: str,
    operator: str | None = None,
    attributes: str | None = None,
    flags: str | None = None,
    version: object = None,
    **kwargs: object,
) -> bool:
    """Add or remove file attributes (chattr) of files. Return whether the program ``chattr`` succeeded.

    operator
        ``add`` or ``remove``
    attributes
        letters, as of chattr(1)
    flags
        letters of chattr's options: R (recursive), V (verbose), f (no error messages)
    version
        version number to store for the files

    CLI Example:

        salt '*' file.chattr /etc/motd operator=add attributes=i
    """
    signs = {"add": "+", "remove": "-"}
    if operator not in signs:
        raise InvocationError("Need an operator: 'add' or 'remove' to modify attributes.")
    if attributes is None:
        raise InvocationError(f"Need attributes: [{file_attributes.LETTERS}]")
    words = ["chattr", f"{signs[operator]}{file_attributes.checked(attributes)}"]
    words += [f"-{flags}"] if flags else []
    words += ["-v", str(version)] if version is not None else []
    return not str(ctx.call("cmd.run", [*words, *files], python_shell=False))


def get_selinux_context(ctx: Context, path: str) -> str:
    """Return the SELinux context of a file, or a sentence that the host has no information about it."""
    try:
        return str(selinux_contexts.read(ctx.host, path))
    except HostError:
        return f"No selinux context information is available for {path}"


def set_selinux_context(
    ctx: Context,
    path: str,
    user: str | None = None,
    role: str | None = None,
    type: str | None = None,
    range: str | None = None,
    persist: bool = False,
) -> str | bool:
    """Set user, role, type or range of the SELinux context of a file. Return the whole new context, or False if no part
    is given.

    persist
        True: also record the context in the SELinux policy
    """
    given = {"seuser": user, "serole": role, "setype": type, "serange": range}
    wanted = selinux_contexts.wanted(given)
    if wanted is None:
        return False
    found = selinux_contexts.read(ctx.host, path)
    selinux_contexts.change(ctx.host, path, found, wanted, persist=persist)
    return str(selinux_contexts.read(ctx.host, path))


def restorecon(ctx: Context, path: str, recursive: bool = False) -> bool:
    """Reset the SELinux context of a file to the context of the SELinux policy; with ``recursive`` of all files in a
    directory. Return whether ``restorecon`` succeeded.
    """
    return not ctx.call("cmd.retcode", ["restorecon", "-FR" if recursive else "-F", path], python_shell=False)


def check_perms(
    ctx: Context,
    name: str,
    ret: dict[str, object] | None,
    user: str | int | None,
    group: str | int | None,
    mode: object,
    attrs: str | None = None,
    follow_symlinks: bool = False,
    seuser: str | None = None,
    serole: str | None = None,
    setype: str | None = None,
    serange: str | None = None,
) -> tuple[dict[str, object], dict[str, object]]:
    """Set owner, group, mode, attributes and SELinux context of a file. In test mode only report the changes.

    Return a pair: a map with name, changes, comment and result, and a map of the previous values (luser, lgroup,
    lmode).

    ret
        such a map with changes, to add more changes to; None starts a new one
    """
    real_path = ctx.host.path(name, follow=follow_symlinks)
    if not lexists(real_path):
        raise CommandError(f"{name} does not exist")
    answer: dict[str, Any] = ret if ret is not None else {"name": name, "changes": {}, "comment": [], "result": True}
    before = stats(ctx, name, follow_symlinks=follow_symlinks)
    wanted = Attributes(user or None, group or None, managed_file.parse_mode(mode))
    changes = managed_file.attribute_changes(ctx.host, real_path, wanted)
    context = selinux_contexts.wanted({"seuser": seuser, "serole": serole, "setype": setype, "serange": serange})
    flags = attrs if attrs is not None and not real_path.is_dir() and not real_path.is_symlink() else None
    try:
        borne = SpecialAttributes(ctx.host, host_name(ctx, real_path), flags, context)
        changes |= borne.changes()
        if not ctx.test and changes:
            borne.unseal()
            managed_file.set_attributes(ctx.host, real_path, wanted)
            borne.put()
        answer["changes"] = {**answer["changes"], **changes}
    except HostError as error:
        answer["result"] = False
        earlier = answer.get("comment")
        answer["comment"] = [*(earlier if isinstance(earlier, list) else [earlier] if earlier else []), str(error)]
    if isinstance(answer["comment"], list):
        answer["comment"] = "; ".join(map(str, answer["comment"]))
    return answer, {"luser": before["user"], "lgroup": before["group"], "lmode": before["mode"]}


def makedirs_perms(
    ctx: Context, name: str, user: str | int | None = None, group: str | int | None = None, mode: object = "0755"
) -> None:
    """Create a directory and its missing parents, each with this owner, group and mode. Return None. Raise CommandError
    if the directory exists.
    """
    real_path = ctx.host.path(name.rstrip("/") or "/")
    if lexists(real_path):
        raise CommandError(f"{PurePosixPath(name)} exists")
    managed_file.make_directories(
        ctx.host, real_path, Attributes(user, group, managed_file.parse_mode(mode)), ctx.host.root
    )
