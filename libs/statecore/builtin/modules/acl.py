"""Access control lists of files (POSIX ACLs), by getfacl and setfacl: Salt's ``acl`` execution module.

``acl_type`` is user, group, mask or other, or one letter of these; with ``default:`` or ``d:`` before it, the entry is one
that new files in a directory get. ``acl_name`` is the user or group; without it, the file's owner or group.
"""

from __future__ import annotations

import re
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of

_OCTAL = (("r", "read", 4), ("w", "write", 2), ("x", "execute", 1))

#: Characters that getfacl writes as three octal digits.
_ESCAPED = re.compile(r"\\([0-7]{3})")


def available(ctx: Context) -> str | None:
    """Return None if the host has getfacl; else return the reason as text."""
    return None if ctx.host.which("getfacl") else "the host has no getfacl: install its package acl"


def version(ctx: Context) -> str:
    """Return the version of getfacl as text, "" if getfacl shows none.

    CLI Example:

        salt '*' acl.version
    """
    words = ctx.host.run(["getfacl", "--version"]).stdout.split()
    return words[1] if len(words) > 1 else ""


def getfacl(ctx: Context, *args: str, **kwargs: Any) -> dict[str, dict[str, Any]]:
    """Return the ACLs of files: a map of path to ``comment`` (owner, group, flags), ``user``, ``group``, ``mask``,
    ``other`` (lists of maps of name to permissions) and ``defaults``.

    args
        paths of the host
    recursive
        True: also of everything below directories

    CLI Example:

        salt '*' acl.getfacl /tmp/house/kitchen
        salt '*' acl.getfacl /tmp/house/kitchen recursive=True
    """
    _required(args)
    words = ["getfacl", "--absolute-names", *(["-R"] if kwargs.get("recursive") else []), *args]
    return parse(ctx.host.run(words).stdout)


def wipefacls(ctx: Context, *args: str, **kwargs: Any) -> bool:
    """Remove all entries from the ACLs of files, except those of owner, group and others. Return True, even if
    setfacl fails.

    args
        paths of the host
    recursive
        True: also of everything below directories
    raise_err
        True: raise CommandError if setfacl fails

    CLI Example:

        salt '*' acl.wipefacls /tmp/house/kitchen
    """
    return _setfacl(ctx, ["-b"], args, kwargs)


def modfacl(ctx: Context, acl_type: str, acl_name: str = "", perms: str = "", *args: str, **kwargs: Any) -> bool:
    """Add an entry to the ACLs of files, or change it. Return True, even if setfacl fails.

    perms
        permissions of the letters r, w, x and X (x for directories, and for files that are executable)
    args
        paths of the host
    recursive
        True: also of everything below directories
    raise_err
        True: raise CommandError if setfacl fails

    CLI Example:

        salt '*' acl.modfacl user myuser rwx /tmp/house/kitchen
        salt '*' acl.modfacl default:group mygroup rx /tmp/house/kitchen recursive=True
    """
    return _setfacl(ctx, ["-m", f"{_prefix(acl_type)}:{acl_name}:{perms}"], args, kwargs)


def delfacl(ctx: Context, acl_type: str, acl_name: str = "", *args: str, **kwargs: Any) -> bool:
    """Remove an entry from the ACLs of files. Return True, even if setfacl fails. The arguments are those of
    ``acl.modfacl``, without ``perms``.

    CLI Example:

        salt '*' acl.delfacl user myuser /tmp/house/kitchen
    """
    return _setfacl(ctx, ["-x", f"{_prefix(acl_type)}:{acl_name}"], args, kwargs)


def parse(text: str) -> dict[str, dict[str, Any]]:
    """Return the output of getfacl as a map of path to the file's ACL, in the form of ``acl.getfacl``."""
    found: dict[str, dict[str, Any]] = {}
    now: dict[str, Any] = {}
    for line in lines_of(text):
        if line.startswith("# "):
            key, _, value = line[2:].partition(": ")
            value = _ESCAPED.sub(lambda each: chr(int(each[1], 8)), value)
            if key == "file":
                now = found[value] = {"comment": {}, "user": [], "group": []}
            now["comment"][key] = value
            if key == "flags":
                signs = zip(("suid", "sgid", "sticky"), value, "sst", strict=False)
                now.update({name: True for name, sign, wanted in signs if sign == wanted})
        elif line and not line.startswith("getfacl"):
            _add_entry(now, line)
    return found


def _add_entry(acl: dict[str, Any], line: str) -> None:
    words = line.split(":")
    place = acl
    if words[0] == "default":
        place = acl.setdefault("defaults", {})
        words = words[1:]
    kind, name = words[0], words[1]
    letters = words[-1]
    entry = {
        "permissions": {word: letter in letters for letter, word, _ in _OCTAL},
        "octal": sum(number for letter, _, number in _OCTAL if letter in letters),
    }
    if kind in ("user", "group"):
        owner = acl["comment"].get("owner" if kind == "user" else "group", "")
        place.setdefault(kind, []).append({name or owner: entry})
    else:
        place[kind] = [{"": entry}]


def _setfacl(ctx: Context, change: list[str], paths: tuple[str, ...], kwargs: dict[str, Any]) -> bool:
    _required(paths)
    recursive = ["-R"] if kwargs.get("recursive") else []
    words = [*recursive, *change] if change[0] != "-b" else [*change, *recursive]
    done = ctx.host.run(["setfacl", *words, *paths], merge_stderr=True)
    if done.retcode and kwargs.get("raise_err"):
        raise CommandError(done.stdout.rstrip("\n") or f"setfacl failed with exit code {done.retcode}")
    return True


def _prefix(acl_type: str) -> str:
    kind = acl_type
    default = ""
    if kind.startswith(("d:", "default:")):
        default, kind = "d:", kind.partition(":")[2]
    return default + (kind[:1] if kind in ("user", "u", "group", "g", "mask", "m", "other", "o") else "")


def _required(paths: tuple[str, ...]) -> None:
    if not paths:
        raise CommandError("You need to specify at least one file or directory to work with!")
