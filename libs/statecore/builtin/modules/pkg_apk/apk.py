"""Helpers of ``pkg`` on Alpine: they read apk's database, run the program ``apk`` and parse its output."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statecore.host.content import managed_file
from statecore.host.detached_run import run_detached
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult, ManagedHost
from statecore.model.text_lines import lines_of
from statecore.system.packages import package_requests
from statecore.system.packages.package_versions import apk as versions

#: Paths of apk's database: of apk 2, of apk 3.
_DATABASES = ("/lib/apk/db/installed", "/usr/lib/apk/db/installed")

_KNOWN = "pkg.list_pkgs"

#: Scratch key that the pkg states set when a run begins: fetch the indexes before the next installation.
_REFRESH_DUE = "pkg.refresh_due"

_ENVIRONMENT = {"LC_ALL": "C"}

#: Seconds to wait for the lock while another apk runs.
_PATIENCE = ("--wait", "120")

_UPGRADING = re.compile(r"^\(\d+/\d+\) Upgrading (?P<name>\S+) \((?P<old>\S+) -> (?P<new>[^)\s]+)\)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ApkPackage:
    """One package that apk has installed: name, version, architecture, and the paths of its files."""

    name: str
    version: str
    architecture: str
    files: tuple[str, ...]


def parse_database(text: str) -> dict[str, ApkPackage]:
    """Parse the text of apk's database ``installed`` into a map of package name to ApkPackage. A package's lines
    ``letter:value`` end with an empty line.
    """
    found: dict[str, ApkPackage] = {}
    for record in text.split("\n\n"):
        fields: dict[str, str] = {}
        files: list[str] = []
        directory = ""
        for line in lines_of(record):
            letter, _, value = line.partition(":")
            if letter == "F":
                directory = value
            elif letter == "R":
                files.append("/" + "/".join(part for part in (directory, value) if part))
            else:
                fields.setdefault(letter, value)
        if "P" in fields and "V" in fields:
            found[fields["P"]] = ApkPackage(fields["P"], fields["V"], fields.get("A", ""), tuple(files))
    return found


def packages(ctx: Context) -> Mapping[str, ApkPackage]:
    """Return a map of package name to ApkPackage (version, architecture, paths of files) for the packages that apk has
    installed. The database is read again only if its file changed.
    """
    place = next((place for place in _DATABASES if ctx.host.path(place).is_file()), _DATABASES[0])
    path = ctx.host.path(place)
    try:
        state = path.stat()
    except FileNotFoundError:
        return {}
    key = (place, state.st_mtime_ns, state.st_size)
    known: tuple[object, Mapping[str, ApkPackage]] | None = ctx.scratch.get(_KNOWN)
    if known is None or known[0] != key:
        data = managed_file.read(path, place) or b""
        known = ctx.scratch[_KNOWN] = (key, parse_database(data.decode("utf-8", "replace")))
    return known[1]


def installed_versions(ctx: Context) -> dict[str, str]:
    """Return a map of package name to version for the packages that apk has installed."""
    return {name: package.version for name, package in packages(ctx).items()}


def run_query(host: ManagedHost, words: Sequence[str]) -> CommandResult:
    """Run an apk command that changes nothing, and return its result (exit code and output). Raise HostError if apk
    cannot be started.
    """
    return host.run(["apk", *words], env=_ENVIRONMENT)


def run_change(host: ManagedHost, words: Sequence[str]) -> list[str]:
    """Run an apk command that changes packages. Return the errors as texts, [] on success.

    Daemons that package scripts start keep running after the command.
    """
    result = run_detached(host, ["apk", "--no-progress", *_PATIENCE, *words], env=_ENVIRONMENT)
    return package_requests.refusal("apk", result, "Run 'apk fix' on the host, then this state again.")


def update(ctx: Context) -> bool:
    """Fetch the package indexes of apk's repositories. Return True; False if one of them could not be fetched."""
    ctx.scratch.pop(_REFRESH_DUE, None)
    return not run_query(ctx.host, [*_PATIENCE, "update"]).retcode


def available_versions(host: ManagedHost, names: Sequence[str], fromrepo: object = None) -> dict[str, list[str]]:
    """Return a map of package to its available versions, newest first, for the packages that a repository of apk has.
    Raise CommandError if apk fails.
    """
    if not names:
        return {}
    result = run_query(host, [*repository_options(fromrepo), "policy", *names])
    if result.retcode and "ERROR" in result.stderr:
        raise CommandError(f"apk policy failed: {result.stderr.strip()}")
    return parse_policy(result.stdout)


def parse_policy(text: str) -> dict[str, list[str]]:
    """Parse the output of ``apk policy`` into a map of package to its available versions, newest first.

    A version that is only installed, and in no repository, is left out.
    """
    places: dict[str, dict[str, list[str]]] = {}
    package = version = ""
    for line in lines_of(text):
        if line.endswith(" policy:"):
            package, version = line.removesuffix(" policy:"), ""
        elif line.startswith("    ") and package and version:
            places.setdefault(package, {}).setdefault(version, []).append(line.strip())
        elif line.startswith("  ") and line.rstrip().endswith(":"):
            version = line.strip().removesuffix(":")
    key = functools.cmp_to_key(versions.compare)
    return {
        name: sorted(
            (each for each, at in known.items() if any("/db/installed" not in place for place in at)), key=key
        )[::-1]
        for name, known in places.items()
    }


def upgrades(host: ManagedHost) -> dict[str, str]:
    """Return a map of package to new version for the packages that ``apk upgrade`` would change. Raise CommandError if
    apk fails.
    """
    result = run_query(host, ["upgrade", "--simulate"])
    if result.retcode:
        raise CommandError(f"apk upgrade --simulate failed: {result.stderr.strip() or result.stdout.strip()}")
    return {match["name"]: match["new"] for match in _UPGRADING.finditer(result.stdout)}


def repository_options(fromrepo: object) -> list[str]:
    """Return apk's options for the repositories ``fromrepo``, which are used besides those of the host."""
    return [word for each in package_requests.texts(fromrepo) for word in ("--repository", each)]
