"""Packages and their files, without the package lists of APT: Salt's ``lowpkg`` execution module, by dpkg."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.text_lines import lines_of
from statecore.system.program_runs import output_lines

_PROTOCOL = re.compile(r"^(salt|https?|file)://")

#: Field in the result -> field of dpkg.
_FIELDS = {
    "package": "Package",
    "revision": "binary:Revision",
    "architecture": "Architecture",
    "maintainer": "Maintainer",
    "summary": "Summary",
    "source": "source:Package",
    "version": "Version",
    "section": "Section",
    "size": "Size",
    "MD5": "MD5sum",
    "SHA1": "SHA1",
    "SHA256": "SHA256",
    "origin": "Origin",
    "homepage": "Homepage",
    "status": "db:Status-Abbrev",
    "install_date": "db-fsys:Last-Modified",
    "description": "Description",
}

#: Line between packages in the output, and the text by which dpkg-query prints it.
_END = "*/~^\\*"
_END_FORMAT = "\\n\\n*/~^\\\\*\\n"


def available(ctx: Context) -> str | None:
    """Return None if the host is of the family Debian and has dpkg; else return the reason as text."""
    if ctx.grains.get("os_family") != "Debian":
        return "lowpkg works with dpkg only, on systems of the family Debian"
    return None if ctx.host.which("dpkg-query") else "the host has no dpkg-query"


def list_pkgs(ctx: Context, *packages: str, **kwargs: object) -> dict[str, str] | str:
    """Return the packages that dpkg has installed: a map of package to version; if dpkg-query fails, a text with its
    error.

    packages
        only these; they may have globs

    CLI Example:

        salt '*' lowpkg.list_pkgs
        salt '*' lowpkg.list_pkgs httpd
    """
    done = ctx.host.run(["dpkg-query", "-f=${db:Status-Status}\t${binary:Package}\t${Version}\n", "-W", *packages])
    if done.retcode:
        return f"Error:  {done.stderr.rstrip()}"
    rows = (line.split("\t") for line in lines_of(done.stdout))
    return {row[1]: row[2] for row in rows if row[0] == "installed" and len(row) > 2}


def file_list(ctx: Context, *packages: str, **kwargs: object) -> dict[str, list[str]] | str:
    """Return the files of packages, or without an argument of all installed ones: a map of ``errors`` and ``files``
    (lists); if dpkg-query fails, a text with its error.

    CLI Example:

        salt '*' lowpkg.file_list httpd postfix
    """
    found = file_dict(ctx, *packages)
    if isinstance(found, str):
        return found
    files = {file for each in found["packages"].values() for file in each}
    return {"errors": [], "files": sorted(files)}


def file_dict(ctx: Context, *packages: str, **kwargs: object) -> dict[str, Any] | str:
    """Return the files of packages: a map of ``errors`` (a list) and ``packages`` (a map of package to its files);
    if dpkg-query fails, a text with its error.

    CLI Example:

        salt '*' lowpkg.file_dict httpd postfix
    """
    done = ctx.host.run(["dpkg-query", "-f=${db:Status-Status}\t${binary:Package}\n", "-W", *packages])
    if done.retcode:
        return f"Error:  {done.stderr.rstrip()}"
    rows = (line.split("\t") for line in lines_of(done.stdout))
    names = [row[1] for row in rows if row[0] == "installed" and len(row) > 1]
    return {"errors": [], "packages": _files(ctx, names)}


def _files(ctx: Context, names: Sequence[str]) -> dict[str, list[str]]:
    """Return a map of installed package to its files."""
    if not names:
        return {}
    # One run for all packages: dpkg separates their lists by empty lines.
    lists = "\n".join(output_lines(ctx.host, ["dpkg", "-L", *names])).split("\n\n")
    if len(lists) == len(names):
        return {name: lines_of(each) for name, each in zip(names, lists, strict=True)}
    return {name: output_lines(ctx.host, ["dpkg", "-L", name]) for name in names}


def info(ctx: Context, *packages: str, **kwargs: object) -> dict[str, dict[str, str]]:
    """Return dpkg's data about installed packages: a map of package to a map of its fields (version, architecture,
    maintainer, install_date, license, description ...).

    failhard
        False: return {} instead of raising CommandError for an unknown package

    CLI Example:

        salt '*' lowpkg.info
        salt '*' lowpkg.info apache2 bash
    """
    given = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    failhard = given.pop("failhard", True)
    if given:
        named = ", ".join(f"{key}={value}" for key, value in given.items())
        raise InvocationError(f"The following keyword arguments are not valid: {named}")
    form = "\\n".join(f"{name}:${{{field}}}" for name, field in _FIELDS.items())
    done = ctx.host.run(["dpkg-query", "-W", f"-f={form}{_END_FORMAT}", *packages])
    if done.retcode:
        if failhard:
            raise CommandError(f"Error getting packages information: {done.stderr.rstrip()}")
        return {}
    found = {}
    for block in (each for each in done.stdout.split(f"\n{_END}\n") if each.strip()):
        fields = parse_info(block)
        licenses = _licenses(ctx, fields.get("package", ""))
        found[fields["package"]] = fields | ({"license": licenses} if licenses else {})
    return found


def bin_pkg_info(ctx: Context, path: str, saltenv: str | None = None) -> dict[str, str]:
    """Return a map with name, version and arch of a package file. Raise CommandError if the file does not exist or
    dpkg cannot read it.

    path
        path on the host, or a file of the state tree or a server

    CLI Example:

        salt '*' lowpkg.bin_pkg_info /root/foo-1.2.3-1ubuntu1_all.deb
    """
    if _PROTOCOL.match(path):
        place = ctx.call("cp.cache_file", path, saltenv)
        if not place:
            raise CommandError(f"Unable to retrieve {path} from saltenv '{saltenv or ctx.saltenv}'")
        path = str(place)
    elif not path.startswith("/") or not ctx.host.path(path).exists():
        raise CommandError(f"{path} does not exist on minion")
    done = ctx.host.run(["dpkg", "-I", path])
    if done.retcode:
        raise CommandError(f"Unable to get info for {path}: {done.stderr.rstrip()}")
    found = {}
    for key, field in (("name", "Package"), ("version", "Version"), ("arch", "Architecture")):
        match = re.search(rf"^\s*{field} *:.*?(\S+)$", done.stdout, re.MULTILINE)
        if match is None:
            raise CommandError(f"Unable to get {key} for {path}")
        found[key] = match[1]
    foreign = found["arch"] not in ("all", ctx.grains.get("osarch", found["arch"]))
    if foreign and ctx.grains.get("cpuarch") == "x86_64" and ctx.grains.get("osarch") == "amd64":
        found["name"] += f":{found['arch']}"
    return found


def unpurge(ctx: Context, *packages: str) -> dict[str, Any]:
    """Set packages that dpkg shall purge to be kept. Return the changes: {name: {"old": version, "new": version}},
    where "new" is "" for a package that is no longer to be purged; {} without packages.

    CLI Example:

        salt '*' lowpkg.unpurge curl
    """
    if not packages:
        return {}
    old = ctx.call("pkg.list_pkgs", purge_desired=True)
    ctx.host.run(["dpkg", "--set-selections"], stdin="".join(f"{each} install\n" for each in packages))
    new = ctx.call("pkg.list_pkgs", purge_desired=True)
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return {name: {"old": old.get(name, ""), "new": new.get(name, "")} for name in names}


def parse_info(block: str) -> dict[str, str]:
    """Return a map of field to text for one package in the output of ``dpkg-query``. Fields without a value are left
    out.
    """
    head, _, description = block.partition("\ndescription:")
    found = {}
    for line in lines_of(head):
        key, _, value = line.strip().partition(":")
        if key == "install_date" and value.isdecimal():
            value = datetime.fromtimestamp(int(value), tz=UTC).isoformat().replace("+00:00", "Z")
        if value:
            found[key] = value
    return found | {"description": description}


def _licenses(ctx: Context, package: str) -> str:
    name = f"/usr/share/doc/{package}/copyright"
    text = (managed_file.read(ctx.host.path(name), name) or b"").decode("utf-8", "replace")
    return ", ".join(sorted({each.strip() for each in re.findall(r"^License:(.*)$", text, re.MULTILINE)}))
