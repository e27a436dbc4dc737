"""Arguments and results of the ``pkg`` functions that are the same for all package managers: versions, files,
changes.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from statecore.host import copies
from statecore.host.content import private_files
from statecore.host.rooted_path import remove_tree
from statecore.model import tree_url
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.ports import CommandResult, ManagedHost
from statecore.model.text_lines import lines_of
from statecore.sources import downloads

#: ``os_family`` grain -> the package manager of that family. Programs of other package managers may be installed too.
_MANAGERS: Mapping[str, str] = {"Debian": "APT", "RedHat": "RPM", "Suse": "zypper", "Alpine": "apk"}

#: All signal numbers are below this.
_SIGNALS = 65

#: Number of output lines that the error message of a killed program quotes.
_LAST = 5


def not_served(ctx: Context, manager: str, programs: Sequence[str]) -> str | None:
    """Return the reason (text) why a package manager does not manage this host; None if it does.

    It does not if its programs are missing, or if the host's OS family belongs to another package manager.
    """
    missing = [program for program in programs if ctx.host.which(program) is None]
    if missing:
        return f"the host has no {', '.join(missing)}"
    family = str(ctx.grains.get("os_family"))
    own = _MANAGERS.get(family, manager)
    return None if own == manager else f"the host is of the family {family}, whose packages are those of {own}"


# ------------------------------------------------------------------------------------------------------- arguments


def wanted(name: str | None, pkgs: object, version: object, normalize: Callable[[str], str]) -> dict[str, str | None]:
    """Map of package to wanted version or version conditions (None: any version), from the arguments of
    ``pkg.install``. Raises InvocationError.
    """
    if not pkgs:
        listed: list[object] = [{each: version} for each in str(name or "").split(",") if each]
    elif isinstance(pkgs, Mapping):
        listed = list(pkgs.items())
    elif isinstance(pkgs, str | list | tuple):
        listed = [pkgs] if isinstance(pkgs, str) else list(pkgs)
    else:
        raise InvocationError(f"pkgs must be a list of names and of maps from a name to a version, not {pkgs!r}")
    found: dict[str, str | None] = {}
    for each in listed:
        pairs = each.items() if isinstance(each, Mapping) else [each if isinstance(each, tuple) else (each, None)]
        for package, exact in pairs:
            found[normalize(str(package))] = None if exact in (None, "", "latest") else str(exact)
    return found


def need_one_kind(pkgs: object, sources: object) -> None:
    """Raise InvocationError if a call of ``pkg.install`` names both packages of repositories and package files."""
    if pkgs and sources:
        raise InvocationError("Only one of pkgs and sources can be used.")


def packed(sources: object) -> dict[str, str]:
    """Map of package to the path or URL of its package file, from the argument ``sources`` of ``pkg.install``.

    Raises InvocationError if the argument is not a list of maps with one entry each.
    """
    if not isinstance(sources, list) or not all(isinstance(each, Mapping) and len(each) == 1 for each in sources):
        raise InvocationError("sources must be a list of maps, each with one package name and the place of its file")
    return {str(name): str(place) for each in sources for name, place in each.items()}


def named(name: str | None, pkgs: object, sources: object) -> list[str]:
    """List of the packages that ``pkg.hold`` or ``pkg.unhold`` applies to, from its arguments.

    Raises InvocationError if none is named, or ``pkgs`` and ``sources`` are both given.
    """
    if not name and not pkgs and not sources:
        raise InvocationError("One of name, pkgs, or sources must be specified.")
    if pkgs and sources:
        raise InvocationError("Only one of pkgs or sources can be specified.")
    given = pkgs or sources or [name]
    listed = given if isinstance(given, Iterable) else [given]
    return [str(next(iter(each)) if isinstance(each, Mapping) else each) for each in listed]


def texts(value: object) -> list[str]:
    """List of texts from an argument: a list, or one text with commas. [] for None and ""."""
    if value in (None, ""):
        return []
    given = value if isinstance(value, list | tuple) else str(value).split(",")
    return [str(each).strip() for each in given]


def package_files(ctx: Context, sources: Mapping[str, str]) -> list[Path]:
    """Local paths of the package files in the argument ``sources`` ({package: path or URL}), fetched from the state
    tree, the host or a server.

    Raises CommandError.
    """
    files = []
    for name, place in sources.items():
        if not place.startswith((tree_url.SCHEME, "/", *downloads.SCHEMES)):
            raise InvocationError(f"Path {place} for package {name} is either not absolute or an invalid protocol")
        try:
            files.append(fetched(ctx, place))
        except CommandError as error:
            raise CommandError(f"Unable to cache source {place} for package {name}: {error}") from error
    return files


def fetched(ctx: Context, place: str) -> Path:
    """Return the local path of a package file, fetched from the state tree (salt://), a server (http://) or the host
    (/).

    Raises CommandError.
    """
    found: Path | None = None
    if tree_url.is_tree_url(place):
        path, named = tree_url.split(place)
        found = ctx.files.fetch(path, named or ctx.saltenv)
    elif place.startswith(downloads.SCHEMES):
        found = downloads.cached_at(place, Path(ctx.opts.get("cachedir", "/var/cache/salt/minion")), ctx.saltenv)
        downloads.fetch(place, found)
    elif place.startswith("/"):
        found = ctx.host.path(place)
    if found is None or not found.is_file():
        raise CommandError("there is no such file")
    return found


@contextmanager
def staged(host: ManagedHost, files: Sequence[Path], suffix: str) -> Iterator[list[str]]:
    """Copy package files to a directory that the host's package manager can read, for the duration of the context.
    Yield their paths on the host.

    ``suffix`` is the file extension that the package manager requires (".deb").
    """
    name = f"/tmp/.saltern-packages-{os.urandom(8).hex()}"
    place = host.path(name)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(mode=private_files.DIRECTORY_MODE)
        paths = []
        for number, file in enumerate(files):
            copied = f"{number}-{file.name}" + ("" if file.name.endswith(suffix) else suffix)
            copies.copy_content(file, place / copied)
            paths.append(f"{name}/{copied}")
        yield paths
    except OSError as error:
        raise HostError(f"package files cannot be put into {name}: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            remove_tree(place)


# ---------------------------------------------------------------------------------------------------- results


def listed(packages: Mapping[str, Sequence[str]], *, as_list: bool) -> dict[str, object]:
    """Map of package to its installed versions, as a list (``as_list``) or joined by commas: the result of
    ``pkg.list_pkgs``.
    """
    return {name: list(versions) if as_list else ",".join(versions) for name, versions in packages.items()}


def versions(packages: Mapping[str, object], names: Sequence[str], nothing: object) -> object:
    """Return the result of ``pkg.version``: the version of one package, or a map for several names or a glob."""
    found: dict[str, object] = {}
    for name in names:
        if "*" in name:
            found |= {package: packages[package] for package in fnmatch.filter(packages, name)}
        else:
            found[name] = packages.get(name, nothing)
    return next(iter(found.values())) if len(names) == 1 and names[0] in found else found


def compared(before: Mapping[str, object], after: Mapping[str, object], again: Iterable[str] = ()) -> dict[str, object]:
    """Map of package to {"old": version, "new": version} for the packages whose version differs before and after a
    call, and for those that were installed ``again``.
    """
    names = sorted({*before, *after})
    pairs = {name: {"old": before.get(name, ""), "new": after.get(name, "")} for name in [*names, *again]}
    shown = {*again, *(name for name, pair in pairs.items() if pair["old"] != pair["new"])}
    return {name: pair for name, pair in pairs.items() if name in shown}


def refusal(program: str, result: CommandResult, mend: str) -> list[str]:
    """List with the package manager's error message if its program failed; [] if it succeeded.

    If the program was killed, the message names the signal. ``mend`` tells the user how to repair a half-finished
    installation.
    """
    if not result.retcode:
        return []
    output = result.stderr.strip() or result.stdout.strip()
    # Python reports a signal as a negative return code, a shell as 128 plus the signal.
    number = -result.retcode if result.retcode < 0 else result.retcode - 128
    if result.timed_out or 0 < number < _SIGNALS:
        last = "\n".join(lines_of(result.stdout.strip() or output)[-_LAST:])
        why = f"{program} was killed (signal {number}) before it was done, and may have left packages half installed. {mend}"
        return ["\n".join(part for part in (why, last) if part)]
    return [output or f"{program} failed with return code {result.retcode}"]


def complain(message: str, errors: Sequence[str], changes: Mapping[str, object]) -> None:
    """Raise CommandError with the package manager's errors and the changes made so far, if there are errors."""
    if errors:
        raise CommandError(message, {"errors": list(errors), "changes": changes})
