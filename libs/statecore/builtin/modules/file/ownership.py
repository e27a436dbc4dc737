"""Who owns files: names and numbers of users and groups, owners, modes and all else that a file bears."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from statecore.builtin.modules.file.paths import existing, host_name
from statecore.builtin.modules.file.queries import stats
from statecore.host import file_attributes, selinux_contexts
from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.host.content.marks import Marks
from statecore.host.rooted_path import lexists
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError


def uid_to_user(ctx: Context, uid: int) -> str:
    """Name of a user, the number as text where it has none."""
    return ctx.host.user_name(int(uid))


def user_to_uid(ctx: Context, user: str | int | None) -> int | str:
    """Number of a user; "" for one that the host does not know."""
    try:
        return ctx.host.uid("root" if user is None else user)
    except HostError:
        return ""


def gid_to_group(ctx: Context, gid: str | int) -> str:
    """Name of a group; "" for one that the host does not know."""
    number = group_to_gid(ctx, gid)
    return ctx.host.group_name(number) if isinstance(number, int) else ""


def group_to_gid(ctx: Context, group: str | int | None) -> int | str:
    """Number of a group; "" for none, and for one that the host does not know."""
    try:
        return "" if group is None else ctx.host.gid(group)
    except HostError:
        return ""


def lchown(ctx: Context, path: str, user: Any, group: Any) -> str | None:
    """Gives a file, or the link itself, an owner and a group; None when it did, else why not."""
    place = ctx.host.path(path, follow=False)
    if not lexists(place):
        return "File not found"
    try:
        managed_file.set_attributes(ctx.host, place, Attributes(user or None, group or None))
    except HostError as error:
        return str(error)
    return None


def lsattr(ctx: Context, path: str) -> dict[str, list[str]] | None:
    """The attributes of a file that may be set, by letter; None where the host has no lsattr."""
    if ctx.host.which("lsattr") is None:
        return None
    place = existing(ctx, path)
    return {path: list(file_attributes.read(ctx.host, host_name(ctx, place)))}


def chattr(
    ctx: Context,
    *files: str,
    operator: str | None = None,
    attributes: str | None = None,
    flags: str | None = None,
    version: Any = None,
) -> bool:
    """Sets (``operator: add``) or takes off (``remove``) attributes of files; ``flags`` of chattr: R, V, f. Whether it did.

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
    """The SELinux context of a file, or a sentence where there is none."""
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
    """Sets parts of the SELinux context of a file, with ``persist`` in the policy, too; the whole context, False for no part."""
    given = {"seuser": user, "serole": role, "setype": type, "serange": range}
    wish = selinux_contexts.wanted(given)
    if wish is None:
        return False
    found = selinux_contexts.read(ctx.host, path)
    selinux_contexts.change(ctx.host, path, found, wish, persist=persist)
    return str(selinux_contexts.read(ctx.host, path))


def restorecon(ctx: Context, path: str, recursive: bool = False) -> bool:
    """Gives a file, or all in a directory, the SELinux context of the policy. Whether it did."""
    return not ctx.call("cmd.retcode", ["restorecon", "-FR" if recursive else "-F", path], python_shell=False)


def check_perms(
    ctx: Context,
    name: str,
    ret: dict[str, Any] | None,
    user: Any,
    group: Any,
    mode: Any,
    attrs: str | None = None,
    follow_symlinks: bool = False,
    seuser: str | None = None,
    serole: str | None = None,
    setype: str | None = None,
    serange: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gives a file owner, group, mode, attributes and context, in test mode only tells; (Salt's state dict, what there was).

    ret
        a state dict that is added to
    """
    place = ctx.host.path(name, follow=follow_symlinks)
    if not lexists(place):
        raise CommandError(f"{name} does not exist")
    answer: dict[str, Any] = ret if ret is not None else {"name": name, "changes": {}, "comment": [], "result": True}
    before = stats(ctx, name, follow_symlinks=follow_symlinks)
    wanted = Attributes(user or None, group or None, managed_file.parse_mode(mode))
    changes = managed_file.attribute_changes(ctx.host, place, wanted)
    context = selinux_contexts.wanted({"seuser": seuser, "serole": serole, "setype": setype, "serange": serange})
    flags = attrs if attrs is not None and not place.is_dir() and not place.is_symlink() else None
    try:
        borne = Marks(ctx.host, host_name(ctx, place), flags, context)
        changes |= borne.changes()
        if not ctx.test and changes:
            borne.unseal()
            managed_file.set_attributes(ctx.host, place, wanted)
            borne.put()
        answer["changes"] = {**answer["changes"], **changes}
    except HostError as error:
        answer["result"] = False
        said = answer.get("comment")
        answer["comment"] = [*(said if isinstance(said, list) else [said] if said else []), str(error)]
    if isinstance(answer["comment"], list):
        answer["comment"] = "; ".join(map(str, answer["comment"]))
    return answer, {"luser": before["user"], "lgroup": before["group"], "lmode": before["mode"]}


def makedirs_perms(ctx: Context, name: str, user: Any = None, group: Any = None, mode: Any = "0755") -> None:
    """Makes a directory and its parents, each with this owner and mode. Raises CommandError where it is there."""
    place = ctx.host.path(name.rstrip("/") or "/")
    if lexists(place):
        raise CommandError(f"{PurePosixPath(name)} exists")
    managed_file.make_directories(
        ctx.host, place, Attributes(user, group, managed_file.parse_mode(mode)), ctx.host.root
    )
