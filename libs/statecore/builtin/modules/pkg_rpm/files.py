"""Functions of ``pkg`` about packages' files on a host with rpm: their owner, and changes since the installation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecore.builtin.modules.pkg_rpm import rpm
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.system.packages import package_requests

#: Signs in a line of ``rpm -V``, and the attribute that differs.
_MISMATCHES: Sequence[tuple[str, str]] = (
    ("S", "size"),
    ("M", "mode"),
    ("5", "md5sum"),
    ("D", "device major/minor number"),
    ("L", "readlink path"),
    ("U", "user"),
    ("G", "group"),
    ("T", "mtime"),
    ("P", "capabilities"),
)

#: Letter after these signs -> kind of file.
_TYPES: Mapping[str, str] = {"c": "config", "d": "doc", "g": "ghost", "l": "license", "r": "readme"}

_COLUMNS = 9


def owner(ctx: Context, *paths: str, **kwargs: object) -> object:
    """Return the name of the package that a file of the host belongs to, "" if there is none. For several paths return
    a map of path to name.

    CLI Example:

        salt '*' pkg.owner /usr/bin/apachectl
    """
    if not paths:
        return ""
    found = {}
    for path in paths:
        result = rpm.run(ctx.host, ["rpm", "-qf", "--queryformat", "%{NAME}\n", path])
        found[path] = "" if result.retcode else result.stdout.partition("\n")[0]
    return found[paths[0]] if len(paths) == 1 else found


def file_list(ctx: Context, *packages: str, **kwargs: object) -> dict[str, list[str]]:
    """Return {"errors": texts, "files": paths} with the files of the named packages, or of all packages."""
    errors: list[str] = []
    files: list[str] = []
    for package in packages or ("-a",):
        result = rpm.run(ctx.host, ["rpm", "-ql", package])
        lines = lines_of(result.stdout)
        if result.retcode:
            errors += lines or [result.stderr.strip()]
        else:
            files += [line for line in lines if line.startswith("/")]
    return {"errors": errors, "files": files}


def file_dict(ctx: Context, *packages: str, **kwargs: object) -> dict[str, object]:
    """Return {"errors": texts, "packages": {package: paths of its files}} for the named packages, or for all
    packages.
    """
    names = packages or tuple(sorted(set(rpm.run(ctx.host, ["rpm", "-qa", "--qf", "%{NAME}\n"]).stdout.split())))
    found: dict[str, list[str]] = {}
    errors: list[str] = []
    for name in names:
        listed = file_list(ctx, name)
        errors += listed["errors"]
        if not listed["errors"]:
            found[name] = listed["files"]
    return {"errors": errors, "packages": found}


def verify(
    ctx: Context, *names: str, ignore_types: object = None, verify_options: object = None, **kwargs: object
) -> dict[str, dict[str, Any]]:
    """Return the files of packages that changed since their installation: a map of path to the differing attributes and
    the kind of the file.

    The named packages are checked, or all. Raise CommandError if rpm fails.

    ignore_types
        kinds of files that are left out: config, doc, ghost, license, readme
    verify_options
        options of rpm -V: ``["nodeps", "nosize"]``

    CLI Example:

        salt '*' pkg.verify httpd ignore_types='["config"]'
    """
    words = ["rpm", *(f"--{option}" for option in package_requests.texts(verify_options))]
    result = rpm.run(ctx.host, [*words, "-V", *names] if names else [*words, "-Va"])
    if result.retcode and not result.stdout.strip():
        raise CommandError(f"Failed to verify package(s): {result.stderr.strip() or f'exit code {result.retcode}'}")
    ignored = package_requests.texts(ignore_types)
    return _parse_verification(result.stdout, ignored)


def modified(ctx: Context, *names: str, **kwargs: object) -> dict[str, list[str]]:
    """Return the files of packages that changed since their installation: a map of path to the list of differing
    attributes.
    """
    return {path: list(found.get("mismatch", ["missing"])) for path, found in verify(ctx, *names).items()}


def _parse_verification(text: str, ignored: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse the output of ``rpm -V`` into a map of path to differing attributes. Lines are ``S.5....T.  c /etc/motd``
    or ``missing     /etc/motd``.
    """
    found: dict[str, dict[str, Any]] = {}
    for line in lines_of(text):
        columns, _, rest = line.partition("/")
        if not rest:
            # A missing dependency of the package, not a file.
            continue
        kind = _TYPES.get(columns[_COLUMNS:].strip())
        if kind is not None and kind in ignored:
            continue
        if columns.startswith("missing"):
            facts: dict[str, object] = {"missing": True}
        else:
            signs = dict(_MISMATCHES)
            facts = {"mismatch": [signs[sign] for sign in columns[:_COLUMNS] if sign in signs]}
        found[f"/{rest}"] = facts | ({"type": kind} if kind else {})
    return found
