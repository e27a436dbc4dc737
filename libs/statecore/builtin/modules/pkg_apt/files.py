"""Files and fields of installed packages, by dpkg: functions of Salt's ``pkg`` execution module."""

from __future__ import annotations

from typing import Any

from statecore.model.context import Context

#: Field of ``lowpkg.info`` -> its name in ``pkg.info_installed``.
_NAMES = {"package": "name", "origin": "vendor", "section": "group", "maintainer": "packager", "homepage": "url"}


def owner(ctx: Context, *paths: str, **kwargs: object) -> str | dict[str, str]:
    """Return the name of the package that a file of the host belongs to, "" if there is none; for several files a
    map of file to package.

    CLI Example:

        salt '*' pkg.owner /usr/bin/apachectl
        salt '*' pkg.owner /usr/bin/apachectl /usr/bin/basename
    """
    found = {path: ctx.host.run(["dpkg", "-S", path]).stdout.split(":")[0].strip() for path in paths}
    return next(iter(found.values()), "") if len(found) < 2 else found


def file_list(ctx: Context, *packages: str, **kwargs: object) -> Any:
    """Return the files of packages, or without an argument of all installed ones: a map of ``errors`` and ``files``
    (lists).

    CLI Example:

        salt '*' pkg.file_list httpd postfix
    """
    return ctx.call("lowpkg.file_list", *packages)


def file_dict(ctx: Context, *packages: str, **kwargs: object) -> Any:
    """Return the files of packages: a map of ``errors`` (a list) and ``packages`` (a map of package to its files).

    CLI Example:

        salt '*' pkg.file_dict httpd postfix
    """
    return ctx.call("lowpkg.file_dict", *packages)


def info_installed(ctx: Context, *names: str, **kwargs: object) -> dict[str, dict[str, str]]:
    """Return dpkg's data about installed packages: a map of package to a map of its fields (name, version, vendor,
    packager, url, group, arch ...).

    failhard
        False: return {} instead of raising CommandError for an unknown package

    CLI Example:

        salt '*' pkg.info_installed bash
    """
    rows = ctx.call("lowpkg.info", *names, **kwargs)
    return {
        package: {_NAMES.get(key, key): value for key, value in fields.items() if key != "status"}
        for package, fields in rows.items()
        if fields.get("status", "ii")[1:2] == "i"
    }
