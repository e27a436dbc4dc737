"""Files with APT's sources on a host, and the plan of a change to one source. Helpers of ``pkg``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from statecore.builtin.modules.pkg_apt import keyservers, repository_keys
from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.ports import ManagedHost
from statecore.system.hostfiles import apt_sources
from statecore.system.hostfiles.apt_sources import AptSource
from statecore.system.packages import package_requests

MAIN = "/etc/apt/sources.list"
PARTS = "/etc/apt/sources.list.d/"

#: Unsupported argument -> the reason.
_REFUSED: Mapping[str, str] = {"copr": "it means Fedora"}

#: Arguments that name a key on a key server.
_KEYS = ("keyid", "keyserver")

_TRUE = ("yes", "true", "with", "on", "enable", "1")


@dataclass(frozen=True, slots=True)
class SourceFileEntry:
    """An APT source, the path of the file that contains it, and all types, URIs and suites of its stanza."""

    file: str
    source: AptSource
    #: All types, URIs and suites of the stanza, for a source of a ``.sources`` file.
    types: tuple[str, ...]
    uris: tuple[str, ...]
    suites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceFilePlan:
    """Plan of a change to one APT source: the new text of its file, its signing key, and the changes to report."""

    wanted: AptSource
    file: str
    #: The file's new text; None where the file needs no change.
    text: str | None
    key: repository_keys.Key | None
    #: Part -> {"old", "new"}; ``{"repo": line}`` for a new source.
    changes: dict[str, object] = field(default_factory=dict)


def texts(host: ManagedHost) -> dict[str, str]:
    """Return a map of path to text for each file of sources that APT reads."""
    found = {}
    try:
        names = [path.name for path in host.path(PARTS).iterdir() if path.name.endswith((".list", ".sources"))]
        parts = sorted(names, key=lambda name: (name.endswith(".sources"), name))
    except (FileNotFoundError, NotADirectoryError):
        parts = []
    for path in (MAIN, *(f"{PARTS}{name}" for name in parts)):
        data = managed_file.read(host.path(path), path)
        if data is not None:
            found[path] = data.decode("utf-8", "surrogateescape")
    return found


def entries(host: ManagedHost) -> list[SourceFileEntry]:
    """Return all APT sources of the host as a list of SourceFileEntry: each source with the path of its file."""
    found = []
    for file, text in texts(host).items():
        for alike in apt_sources.by_stanza(text, stanzas=file.endswith(".sources")):
            types, uris, suites = (
                tuple(dict.fromkeys(getattr(each, part) for each in alike)) for part in ("type", "uri", "dist")
            )
            found += [SourceFileEntry(file, source, types=types, uris=uris, suites=suites) for source in alike]
    return found


def find(host: ManagedHost, wanted: AptSource) -> SourceFileEntry | None:
    """Return the host's APT source that has the wanted type, URI and suite and a component in common with it. Return
    None if there is none.
    """
    return next((entry for entry in entries(host) if wanted.same_place(entry.source)), None)


def parsed(line: str) -> AptSource:
    """Return the APT source that a line describes. Raise InvocationError for an invalid line."""
    source = apt_sources.parse_line(line)
    if source is None:
        raise InvocationError(
            f"Name {line} is not valid. This must be the complete repo entry as seen in the sources file"
        )
    return replace(source, written="")


def named(ctx: Context, repo: str, given: Mapping[str, Any]) -> AptSource:
    """Return the APT source that a line, or ``ppa:OWNER/NAME``, describes. Raise InvocationError for another text."""
    if not repo.startswith("ppa:"):
        return parsed(repo)
    return parsed(ppa_line(ctx, keyservers.Ppa.of(ctx, repo), given))


def described(entry: SourceFileEntry) -> dict[str, object]:
    """Return an APT source as the map that ``pkg.get_repo`` returns: file, line, type, uri, dist, comps, architectures,
    signedby, enabled and more.
    """
    return {"file": entry.file, **_parts(entry.source, entry), "enabled": not entry.source.disabled}


def plan(ctx: Context, repo: str, given: Mapping[str, Any]) -> SourceFilePlan:
    """Return the plan of ``pkg.mod_repo``: the new text of the source's file, the signing key, and the changes to
    report. Raise InvocationError for unsupported arguments, CommandError for files that cannot be used.
    """
    for name, why in _REFUSED.items():
        if given.get(name) not in (None, False):
            raise InvocationError(f"not supported: {name}; {why}")
    for first, second in (
        ("key_url", "key_text"),
        *((f"key_{kind}", key) for kind in ("url", "text") for key in _KEYS),
    ):
        if given.get(first) and given.get(second):
            other = '"keyid"/"keyserver"' if second in _KEYS else f'"{first}"'
            own = f'"{first}"' if second in _KEYS else f'"{second}"'
            raise InvocationError(f"You may not use both {other} and {own} argument.")
    archive = str(given.get("ppa") or (repo if repo.startswith("ppa:") else ""))
    ppa = keyservers.Ppa.of(ctx, archive) if archive else None
    current = parsed(ppa_line(ctx, ppa, given) if ppa else repo)
    wanted = _wanted(current, given)
    found = find(ctx.host, current)
    file = found.file if found else str(given.get("file") or (ppa.file(current.dist) if ppa else MAIN))
    if not file.startswith("/") or not file.endswith((".list", ".sources")):
        raise InvocationError(f"file must be a path below /etc/apt that ends with .list or .sources, not {file}")
    key = repository_keys.of(wanted, given, ppa)
    if found is None and not given.get("aptkey", True) and not (wanted.signed_by or wanted.trusted):
        raise InvocationError("missing 'signedby' or 'trusted' option when apt-key is missing")
    comments = package_requests.texts(given.get("comments")) if isinstance(given.get("comments"), list) else None
    comments = comments if comments is not None else [str(given["comments"])] if given.get("comments") else []
    changes: dict[str, object] = {"repo": repo} if found is None else _differences(found, wanted, comments)
    text = _text(ctx.host, file, found, wanted, comments, clean=bool(given.get("clean_file")), changed=bool(changes))
    if text is not None and not changes:
        changes = {"file": {"old": "other sources", "new": file}}
    if key is not None and (path := repository_keys.missing(ctx, key)):
        changes = changes or {"key": {"old": "", "new": path}}
    elif not changes:
        key = None
    return SourceFilePlan(wanted, file, text, key, changes)


def ppa_line(ctx: Context, ppa: keyservers.Ppa, given: Mapping[str, Any]) -> str:
    """Return the source line of an archive of Launchpad: of an existing source under any of its addresses, else a new one.

    Raises InvocationError for a private archive without ``keyid``.
    """
    release = given.get("dist") or ctx.grains.get("oscodename")
    if login := given.get("ppa_auth"):
        if not given.get("keyid"):
            raise InvocationError(f"Private PPAs require a keyid to be specified: {ppa.owner}/{ppa.name}")
        return f"deb {ppa.private_address(str(login))} {release} main"
    lines = [f"deb {address} {release} main" for address in ppa.addresses()]
    return next((line for line in lines if find(ctx.host, parsed(line))), lines[0])


def consolidate(host: ManagedHost) -> None:
    """Move all APT sources to /etc/apt/sources.list, one line for each type, address and suite, and remove the other
    files. Comments are lost. Raises HostError if a file cannot be written.
    """
    joined: dict[tuple[object, ...], AptSource] = {}
    read = texts(host)
    for entry in entries(host):
        source = entry.source
        place = (source.architectures, source.disabled, source.type, source.uri, source.dist)
        known = joined.get(place)
        comps = dict.fromkeys((*(known.comps if known else ()), *source.comps))
        joined[place] = replace(known or source, comps=tuple(comps), written="", comment="")
    write(host, MAIN, "".join(f"{source.line}\n" for source in joined.values()))
    for file in read:
        if file.startswith(PARTS):
            managed_file.remove(host.path(file))


def write(host: ManagedHost, file: str, text: str) -> None:
    """Write ``text`` as the file ``file`` of APT sources, with mode 0644 if it is new. Raise HostError if this
    fails.
    """
    real_path = host.path(file)
    managed_file.make_directories(host, real_path.parent, managed_file.Attributes(mode=0o755), host.path("/"))
    attributes = managed_file.Attributes(mode=None if real_path.exists() else 0o644)
    managed_file.replace(host, real_path, text.encode("utf-8", "surrogateescape"), attributes)


def _wanted(named: AptSource, given: Mapping[str, object]) -> AptSource:
    wanted = named
    if given.get("comps"):
        wanted = replace(wanted, comps=tuple(package_requests.texts(given["comps"])))
    if given.get("architectures"):
        wanted = replace(wanted, architectures=tuple(package_requests.texts(given["architectures"])))
    if given.get("dist"):
        wanted = replace(wanted, dist=str(given["dist"]))
    if given.get("trusted") is not None:
        wanted = replace(wanted, trusted=str(given["trusted"]).lower() in _TRUE)
    disabled, enabled = given.get("disabled"), given.get("enabled")
    if disabled is not None:
        wanted = replace(wanted, disabled=str(disabled).lower() in _TRUE)
    elif enabled is not None:
        wanted = replace(wanted, disabled=str(enabled).lower() not in _TRUE)
    return wanted


def _text(
    host: ManagedHost,
    file: str,
    found: SourceFileEntry | None,
    wanted: AptSource,
    comments: list[str],
    *,
    clean: bool,
    changed: bool,
) -> str | None:
    """Return the text that the host's file ``file`` of APT sources must have to contain the source ``wanted``; None if
    the file needs no change.
    """
    data = managed_file.read(host.path(file), file)
    old = (data or b"").decode("utf-8", "surrogateescape")
    stanzas = file.endswith(".sources")
    if clean and len(apt_sources.sources(old, stanzas=stanzas)) > (1 if found else 0):
        return apt_sources.with_source("", wanted, None, stanzas=stanzas, comments=comments)
    if not changed:
        return None
    try:
        return apt_sources.with_source(old, wanted, found.source if found else None, stanzas=stanzas, comments=comments)
    except (CommandError, HostError):
        raise
    except ValueError as error:
        raise CommandError(f"{file}: {error}") from error


def _parts(source: AptSource, entry: SourceFileEntry | None = None) -> dict[str, object]:
    """Return a map of those parts of an APT source that are compared and shown: comps, disabled, dist, suites, type,
    types, uri, uris, line, architectures, signedby.
    """
    return {
        "comps": list(source.comps),
        "disabled": source.disabled,
        "dist": source.dist,
        "suites": list(entry.suites) if entry else [source.dist],
        "type": source.type,
        "types": list(entry.types) if entry else [source.type],
        "uri": source.uri,
        "uris": list(entry.uris) if entry else [source.uri],
        "line": source.written or source.line,
        "architectures": list(source.architectures),
        "signedby": source.signed_by,
    }


def _differences(found: SourceFileEntry, wanted: AptSource, comments: list[str]) -> dict[str, object]:
    """Return {part: {"old", "new"}} for the parts in which an APT source differs from the wanted one.

    Return {} if the sources differ only in the order of their parts, or in further types or suites of the stanza.
    """
    old, new = _parts(found.source), _parts(wanted)
    same = (
        sorted(found.source.comps) == sorted(wanted.comps)
        and sorted(found.source.architectures) == sorted(wanted.architectures)
        and found.source.signed_by == wanted.signed_by
        and bool(found.source.trusted) == bool(wanted.trusted)
        and found.source.disabled == wanted.disabled
        and found.source.dist == wanted.dist
        and found.source.uri == wanted.uri
    )
    if same and comments and not found.file.endswith(".sources"):
        same = found.source.comment.strip() == " ".join(comments)
        new["line"] = replace(wanted, comment=f" {' '.join(comments)}").line
    if same:
        return {}
    return {part: {"old": old[part], "new": new[part]} for part in new if old[part] != new[part]}
