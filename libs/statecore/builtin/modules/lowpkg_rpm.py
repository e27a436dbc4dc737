"""Packages and their files, without the package lists of repositories: Salt's ``lowpkg`` execution module, by rpm."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from statecore.builtin.modules.pkg_rpm import files, rpm
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult
from statecore.model.text_lines import lines_of
from statecore.system.packages.package_versions import rpm as versions

VIRTUAL = "lowpkg"

_PROTOCOL = re.compile(r"^(salt|https?|ftp|file)://")

#: Attribute of ``info`` -> its line in rpm's query format. SIZE is the name of the tag with the size.
_ATTRIBUTES: Mapping[str, str] = {
    "name": "name: %{NAME}\\n",
    "relocations": "relocations: %|PREFIXES?{[%{PREFIXES} ]}:{(not relocatable)}|\\n",
    "version": "version: %{VERSION}\\n",
    "vendor": "vendor: %{VENDOR}\\n",
    "release": "release: %{RELEASE}\\n",
    "epoch": "%|EPOCH?{epoch: %{EPOCH}\\n}|",
    "build_date_time_t": "build_date_time_t: %{BUILDTIME}\\n",
    "build_date": "build_date: %{BUILDTIME}\\n",
    "install_date_time_t": "install_date_time_t: %|INSTALLTIME?{%{INSTALLTIME}}:{(not installed)}|\\n",
    "install_date": "install_date: %|INSTALLTIME?{%{INSTALLTIME}}:{(not installed)}|\\n",
    "build_host": "build_host: %{BUILDHOST}\\n",
    "group": "group: %{GROUP}\\n",
    "source_rpm": "source_rpm: %{SOURCERPM}\\n",
    "size": "size: %{SIZE}\\n",
    "arch": "arch: %{ARCH}\\n",
    "license": "%|LICENSE?{license: %{LICENSE}\\n}|",
    "signature": "signature: %|DSAHEADER?{%{DSAHEADER:pgpsig}}:{%|RSAHEADER?{%{RSAHEADER:pgpsig}}:"
    "{%|SIGGPG?{%{SIGGPG:pgpsig}}:{%|SIGPGP?{%{SIGPGP:pgpsig}}:{(none)}|}|}|}|\\n",
    "packager": "%|PACKAGER?{packager: %{PACKAGER}\\n}|",
    "url": "%|URL?{url: %{URL}\\n}|",
    "summary": "summary: %{SUMMARY}\\n",
    "edition": "edition: %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n",
}
_DESCRIPTION = "description:\\n%{DESCRIPTION}\\n"

#: Line between packages.
_END = "*/~^saltern^~/*"

#: Attributes of ``modified``, in the order of rpm's signs.
_SIGNS = ("size", "mode", "checksum", "device", "symlink", "owner", "group", "time", "capabilities")


def available(ctx: Context) -> str | None:
    """Return None if the host is of the family RedHat or Suse and has rpm; else return the reason as text."""
    if ctx.grains.get("os_family") not in ("RedHat", "Suse"):
        return "lowpkg works with rpm on systems of the families RedHat and Suse"
    return None if ctx.host.which("rpm") else "the host has no rpm"


def list_pkgs(ctx: Context, *packages: str, **kwargs: object) -> dict[str, str]:
    """Return the packages that rpm has installed: a map of package to version, without release.

    packages
        only these
    root
        directory of the host that is used as ``/``

    CLI Example:

        salt '*' lowpkg.list_pkgs
    """
    return dict(_installed(ctx, packages, kwargs)[0])


def verify(ctx: Context, *packages: str, **kwargs: Any) -> dict[str, dict[str, Any]]:
    """Return the files of packages that changed since their installation: a map of path to the differing attributes and
    the kind of the file. Raise CommandError if rpm fails.

    ignore_types
        kinds of files that are left out: config, doc, ghost, license, readme
    verify_options
        options of rpm -V: ``["nodeps", "nosize"]``
    root
        directory of the host that is used as ``/``

    CLI Example:

        salt '*' lowpkg.verify httpd postfix ignore_types=['config','doc']
    """
    options = {name: kwargs[name] for name in ("ignore_types", "verify_options") if name in kwargs}
    if kwargs.get("root"):
        # Long options of rpm stand before -V.
        given = options.get("verify_options") or []
        listed = given.split(",") if isinstance(given, str) else list(given)
        options["verify_options"] = [f"root={kwargs['root']}", *listed]
    return files.verify(ctx, *packages, **options)


def modified(ctx: Context, *packages: str, **flags: object) -> dict[str, Any]:
    """Return the files of packages that changed since their installation: a map of path to a list of what differs (size,
    mode, checksum, device, symlink, owner, group, time, capabilities; ``config`` for a configuration file). If rpm fails,
    return its exit code and messages.

    root
        directory of the host that is used as ``/``
    size, mode, checksum ...
        True: only files that differ in it; False: only files that do not

    CLI Example:

        salt '*' lowpkg.modified httpd mode=True
    """
    done = _rpm(ctx, flags, "-V" if packages else "-Va", *packages)
    if done.retcode > 1:
        return {"retcode": done.retcode, "stderr": done.stderr.strip()}
    found: dict[str, list[str]] = {}
    for line in lines_of(done.stdout):
        columns, slash, path = line.partition("/")
        signs, *kind = columns.split()
        if not slash or signs == "missing":
            continue
        padded = signs.ljust(len(_SIGNS), ".")
        differing = [name for name, sign in zip(_SIGNS, padded, strict=False) if sign != "."]
        found[f"/{path}"] = differing + (["config"] if kind else [])
    wanted = {name: value for name, value in flags.items() if not name.startswith("_") and name != "root"}
    return {
        path: differing
        for path, differing in found.items()
        if all(bool(value) == (name in differing) for name, value in wanted.items())
    }


def file_list(ctx: Context, *packages: str, **kwargs: object) -> dict[str, list[str]]:
    """Return the files of packages, or without an argument of all installed ones: a map of ``errors`` (empty) and
    ``files``. For an unknown package rpm's message is among the files, as in Salt.

    root
        directory of the host that is used as ``/``

    CLI Example:

        salt '*' lowpkg.file_list httpd postfix
    """
    done = _rpm(ctx, kwargs, "-ql" if packages else "-qla", *packages)
    return {"errors": [], "files": lines_of(done.stdout)}


def file_dict(ctx: Context, *packages: str, **kwargs: object) -> dict[str, Any]:
    """Return the files of packages: a map of ``errors`` (messages about unknown packages) and ``packages`` (a map of
    package to its files).

    root
        directory of the host that is used as ``/``

    CLI Example:

        salt '*' lowpkg.file_dict httpd postfix
    """
    found, errors = _installed(ctx, packages, kwargs)
    return {
        "errors": errors,
        "packages": {name: lines_of(_rpm(ctx, kwargs, "-ql", name).stdout) for name in found},
    }


def owner(ctx: Context, *paths: str, **kwargs: object) -> object:
    """Return the name of the package that a file of the host belongs to, "" if there is none. For several paths return
    a map of path to name.

    root
        directory of the host that is used as ``/``

    CLI Example:

        salt '*' lowpkg.owner /usr/bin/apachectl
    """
    found = {}
    for path in paths:
        done = _rpm(ctx, kwargs, "-qf", "--queryformat", "%{NAME}\n", path)
        found[path] = "" if done.retcode else done.stdout.partition("\n")[0]
    return "" if not paths else found[paths[0]] if len(found) == 1 else found


def diff(ctx: Context, package_path: str, path: str) -> str:
    """Return the differences between a file of a package and the file of the host, as text; "" if there are none. Raise
    CommandError if a program is missing.

    package_path
        path of the RPM file on the host
    path
        path of the installed file

    CLI Example:

        salt '*' lowpkg.diff /path/to/apache2.rpm /etc/apache2/httpd.conf
    """
    for program in ("rpm2cpio", "cpio", "diff"):
        if not ctx.host.which(program):
            raise CommandError(f"lowpkg.diff needs the program {program} on the host")
    package, inside, place = (shlex.quote(text) for text in (package_path, f".{path}", path))
    labels = [shlex.quote(f"{side} {path}") for side in "AB"]
    done = ctx.host.run(
        f"rpm2cpio {package} | cpio -i --quiet --to-stdout {inside} "
        f"| diff -u --label {labels[0]} --from-file=- --label {labels[1]} {place}",
        env=rpm.ENVIRONMENT,
    )
    if done.stdout.startswith("Binary file"):
        return f"File '{path}' is binary and its content has been modified."
    return done.stdout.rstrip("\n")


def info(ctx: Context, *packages: str, **kwargs: Any) -> dict[str, Any]:
    """Return rpm's data about installed packages: a map of package to a map of its attributes. Of several installed
    versions the newest counts. Raise CommandError if ``attr`` names no attribute.

    attr
        names of attributes, with commas between them: version, vendor, release, build_date, build_date_time_t,
        install_date, install_date_time_t, build_host, group, source_rpm, arch, epoch, size, license, signature, packager,
        url, summary, description; default: all
    all_versions
        True: each package has a list of all its installed versions
    root
        directory of the host that is used as ``/``

    CLI Example:

        salt '*' lowpkg.info apache2 bash attr=version,size
    """
    tags = ctx.host.run(["rpm", "--querytags"], env=rpm.ENVIRONMENT).stdout.split()
    wanted = [name.strip() for name in str(kwargs["attr"]).split(",")] if kwargs.get("attr") else []
    if wanted and not any(name in _ATTRIBUTES for name in wanted):
        raise CommandError("No valid attributes found.")
    chosen = [name for name in _ATTRIBUTES if not wanted or name in wanted or name in ("name", "edition")]
    form = "".join(_ATTRIBUTES[name] for name in chosen)
    if "LONGSIZE" in tags:
        form = form.replace("%{SIZE}", "%{LONGSIZE}")
    described = not wanted or "description" in wanted
    form += (_DESCRIPTION if described else "") + f"{_END}\\n"
    done = _rpm(ctx, kwargs, *(("-q", *packages) if packages else ("-qa",)), "--queryformat", form)
    rows = [_described(block, described) for block in done.stdout.split(f"{_END}\n") if block.strip()]
    rows.sort(key=functools.cmp_to_key(lambda one, other: versions.compare(other["edition"], one["edition"])))
    found: dict[str, Any] = {}
    for row in rows:
        name = row.pop("name")
        if name.startswith("gpg-pubkey"):
            continue
        if kwargs.get("all_versions"):
            found.setdefault(name, []).append(row)
        elif name not in found:
            found[name] = {key: value for key, value in row.items() if key != "edition"}
    return found


def bin_pkg_info(ctx: Context, path: str, saltenv: str = "base") -> dict[str, object] | None:
    """Return a map with name, version, arch, repoid, install_date and install_date_time_t of a package file; None if rpm
    cannot read it. Raise CommandError if the file does not exist.

    path
        path on the host, or a file of the state tree or a server

    CLI Example:

        salt '*' lowpkg.bin_pkg_info /root/salt-2015.5.1-2.el7.noarch.rpm
    """
    if _PROTOCOL.match(path):
        place = ctx.call("cp.cache_file", path, saltenv)
        if not place:
            raise CommandError(f"Unable to retrieve {path} from saltenv '{saltenv}'")
        path = str(place)
    elif not path.startswith("/") or not ctx.host.path(path).exists():
        raise CommandError(f"{path} does not exist on minion")
    try:
        (package,) = rpm.file_packages(ctx.host, [path], str(ctx.grains.get("osarch", "")))
    except CommandError:
        return None
    facts = package.attributes()
    return {
        "name": package.name,
        "version": package.full_version,
        "arch": package.architecture,
        "repoid": "none",
        "install_date": facts["install_date"],
        "install_date_time_t": facts["install_date_time_t"],
    }


def version_cmp(ctx: Context, ver1: str, ver2: str, ignore_epoch: bool = False) -> int:
    """Compare two versions: return -1 if the first is older, 0 if they are equal, 1 if it is newer. A release that only
    one of them has does not count.

    CLI Example:

        salt '*' lowpkg.version_cmp '0.2-001' '0.2.0.1-002'
    """
    one, other = (str(text).split(":", maxsplit=1)[-1] if ignore_epoch else str(text) for text in (ver1, ver2))
    if "-" not in one or "-" not in other:
        one, other = one.partition("-")[0], other.partition("-")[0]
    return versions.compare(one, other)


def checksum(ctx: Context, *paths: str, **kwargs: object) -> dict[str, bool]:
    """Return whether the digests and signatures of RPM files are good: a map of path to True or False. Raise
    CommandError without a path.

    root
        directory of the host that is used as ``/``

    CLI Example:

        salt '*' lowpkg.checksum /path/to/package1.rpm /path/to/package2.rpm
    """
    if not paths:
        raise CommandError("No package files has been specified.")
    return {
        path: ctx.host.path(path).is_file() and not _rpm(ctx, kwargs, "-K", "--quiet", path).retcode for path in paths
    }


def _rpm(ctx: Context, options: Mapping[str, object], *words: str) -> CommandResult:
    root = ["--root", str(options["root"])] if options.get("root") else []
    return ctx.host.run(["rpm", *root, *words], env={**rpm.ENVIRONMENT, "TZ": "UTC"})


def _installed(
    ctx: Context, packages: tuple[str, ...], options: Mapping[str, object]
) -> tuple[dict[str, str], list[str]]:
    """Return (map of installed package to version, rpm's messages about packages that are not installed)."""
    query = ("-q", "--queryformat", "%{NAME} %{VERSION}\n", *packages)
    done = _rpm(ctx, options, *(query if packages else ("-qa", *query[1:])))
    lines = [line for line in lines_of(done.stdout) if line.strip()]
    errors = [line for line in lines if "is not installed" in line]
    rows = [line.split() for line in lines if line not in errors]
    return {row[0]: row[1] for row in rows if len(row) > 1}, errors


def _described(block: str, described: bool) -> dict[str, Any]:
    """Return the map of one package's attributes for ``lowpkg.info``, read from the text that ``rpm --queryformat`` printed for
    the package: lines of ``attribute: value``, such as ``name: bash``. Attributes without a value are left out.

    Dates, which rpm prints in seconds since 1970, become texts in ISO format; those whose name ends in ``_t`` become integers.
    ``described``: the text ends with a line ``description:`` and the package's description, which gets the key ``description``.
    """
    head, _, description = block.partition("description:\n") if described else (block, "", "")
    row: dict[str, Any] = {}
    for line in lines_of(head):
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon or not value:
            continue
        if key in ("build_date", "install_date", "build_date_time_t", "install_date_time_t"):
            if not value.isdecimal():
                continue
            moment = int(value)
            date = datetime.fromtimestamp(moment, UTC).replace(tzinfo=None).isoformat() + "Z"
            row[key] = moment if key.endswith("_t") else date
        else:
            row[key] = value
    return row | ({"description": description.strip("\n")} if described else {})
