"""The ``.repo`` files of a host, and the plan of a change to one repository. Helpers of ``pkg``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from statecore.host.content import managed_file
from statecore.model.errors import InvocationError
from statecore.model.ports import ManagedHost
from statecore.system.hostfiles import ini, yum_repos
from statecore.system.packages import package_requests

#: Default directories of ``.repo`` files, and the configuration files that can name others.
_DIRECTORIES = ("/etc/yum.repos.d", "/etc/yum/repos.d", "/etc/distro.repos.d")
_CONFIGURATIONS = ("/etc/dnf/dnf.conf", "/etc/yum.conf", "/etc/yum/yum.conf")

#: Options with the packages' location; a repository has exactly one of them.
_LINKS = ("baseurl", "mirrorlist", "metalink")

#: Unsupported argument -> the reason, or what to use instead.
_REFUSED: Mapping[str, str] = {
    "copr": "write the repository's baseurl, as `dnf copr enable` would",
    "ppa": "it means Ubuntu",
    "key_url": "name the key with gpgkey; dnf fetches it",
    "key_text": "write the key into a file, and name that with gpgkey",
    "keyid": "name the key with gpgkey",
    "keyserver": "name the key with gpgkey",
    "clean_file": "every repository is written to a file of its own",
    "gpgautoimport": "it means zypper",
    "consolidate": "it means APT",
}

#: Arguments of ``pkgrepo.managed`` that are no options of a section. APT's are ignored: one state may have both.
_NO_OPTIONS = frozenset(
    [
        "basedir",
        "refresh",
        "refresh_db",
        "comments",
        "humanname",
        "disabled",
        "strict_config",
        "saltenv",
        "aptkey",
        "file",
        "comps",
        "dist",
        "architectures",
        "trusted",
    ]
)


@dataclass(frozen=True, slots=True)
class RepoFilePlan:
    """Plan of a change to one dnf repository: the new text of its ``.repo`` file, and the changes to report."""

    file: str
    #: The file's new text; None where the file needs no change.
    text: str | None = None
    #: Option -> {"old", "new"}; ``{"repo": name}`` for a new repository.
    changes: dict[str, object] = field(default_factory=dict)


def directories(host: ManagedHost, basedir: object = None) -> list[str]:
    """Return the paths of the host's directories of ``.repo`` files: ``basedir``, else those in dnf's configuration,
    else the defaults.
    """
    if basedir:
        return package_requests.texts(basedir)
    for configuration in _CONFIGURATIONS:
        data = managed_file.read(host.path(configuration), configuration)
        main = ini.plain(ini.parse((data or b"").decode("utf-8", "replace"))).get("main")
        if isinstance(main, dict) and main.get("reposdir"):
            return [each for each in str(main["reposdir"]).replace(",", " ").split() if each.startswith("/")]
    return list(_DIRECTORIES)


def texts(host: ManagedHost, basedir: object = None) -> dict[str, str]:
    """Return a map of path to text for each ``.repo`` file of the host."""
    found = {}
    for directory in directories(host, basedir):
        real_path = host.path(directory)
        for path in sorted(real_path.glob("*.repo")) if real_path.is_dir() else ():
            name = f"{directory.rstrip('/')}/{path.name}"
            data = managed_file.read(host.path(name), name)
            if data is not None:
                found[name] = data.decode("utf-8", "surrogateescape")
    return found


def known(host: ManagedHost, repo: str) -> bool:
    """Return whether the host has a dnf repository of this name."""
    return any(repo in yum_repos.sections(text) for text in texts(host).values())


def plan(host: ManagedHost, repo: str, given: Mapping[str, object]) -> RepoFilePlan:
    """Return the plan of ``pkg.mod_repo``: the new text of the repository's ``.repo`` file, and the changes to report.
    Raise InvocationError for unsupported or conflicting arguments.
    """
    for argument, why in _REFUSED.items():
        if given.get(argument) not in (None, False):
            raise InvocationError(f"not supported: {argument}; {why}")
    if "/" in repo or repo.startswith(("copr:", ".")) or "]" in repo:
        raise InvocationError(f"'{repo}' is not a name of a repository")
    wanted = {key: value for key, value in given.items() if key not in _NO_OPTIONS and key not in _REFUSED}
    if given.get("humanname"):
        wanted["name"] = given["humanname"]
    elif not known(host, repo):
        wanted.setdefault("name", repo)
    if given.get("disabled") is not None:
        wanted["enabled"] = not given["disabled"]
    options = {key: _text(value) for key, value in wanted.items() if value not in (None, "", [])}
    removed = [key for key, value in wanted.items() if value in (None, "", [])]
    if "name" in removed:
        raise InvocationError("The repo name cannot be deleted")
    links = [key for key in _LINKS if key in options]
    if len(links) > 1:
        raise InvocationError(f"One and only one of {', '.join(_LINKS)} can be used")
    # A new location replaces the previous one, which may be another option.
    removed += [key for key in _LINKS if links and key not in links]
    basedir = given.get("basedir")
    for file, text in texts(host, basedir).items():
        if repo in (sections := yum_repos.sections(text)):
            return _changed(repo, file, text, sections[repo], options, removed, given.get("comments"))
    if not links:
        raise InvocationError(
            f"The repo does not exist and needs to be created, but none of {', '.join(_LINKS)} was given"
        )
    known_directories = directories(host, basedir)
    directory = next((each for each in known_directories if host.path(each).is_dir()), known_directories[0])
    text = yum_repos.edited("", repo, {"name": options["name"], **options}, comments=_comments(given.get("comments")))
    return RepoFilePlan(f"{directory.rstrip('/')}/{repo}.repo", text, {"repo": repo})


def write(host: ManagedHost, file: str, text: str) -> None:
    """Write a ``.repo`` file. Raise HostError if this fails."""
    real_path = host.path(file)
    managed_file.make_directories(host, real_path.parent, managed_file.Attributes(mode=0o755), host.path("/"))
    attributes = managed_file.Attributes(mode=None if real_path.exists() else 0o644)
    managed_file.replace(host, real_path, text.encode("utf-8", "surrogateescape"), attributes)


def _changed(
    repo: str,
    file: str,
    text: str,
    now: Mapping[str, object],
    options: Mapping[str, str],
    removed: list[str],
    comments: object,
) -> RepoFilePlan:
    left = [key for key in _LINKS if key in options or (key in now and key not in removed)]
    if not left:
        gone = next((key for key in _LINKS if key in removed), _LINKS[0])
        others = " or ".join(key for key in _LINKS if key != gone)
        raise InvocationError(f"Cannot delete {gone} without specifying {others}")
    differing = {key: value for key, value in options.items() if not _same(key, now.get(key), value)}
    gone_now = [key for key in removed if key in now]
    remarks = _comments(comments)
    changes: dict[str, object] = {key: {"old": now.get(key), "new": value} for key, value in differing.items()}
    changes |= {key: {"old": now[key], "new": None} for key in gone_now}
    if remarks is not None and now.get("comments", []) != remarks:
        changes["comments"] = {"old": now.get("comments"), "new": remarks}
    if not changes:
        return RepoFilePlan(file)
    new = yum_repos.edited(text, repo, differing, gone_now, remarks if "comments" in changes else None)
    return RepoFilePlan(file, new, changes)


def _comments(value: object) -> list[str] | None:
    """Return the comments of a repository as lines for its section of the ``.repo`` file; None if none are given."""
    if value is None:
        return None
    return [str(each).lstrip("# ") for each in (value if isinstance(value, list) else [value])]


def _text(value: object) -> str:
    """Return an option's value as the text that is written into a ``.repo`` file."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return "\n".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _same(key: str, now: object, wanted: str) -> bool:
    """Return whether an option of a ``.repo`` file already has the wanted value. A repository without ``enabled`` is
    enabled. The values 1, yes and true are equal.
    """
    if now is None:
        return key == "enabled" and _flag(wanted) is True
    return now == wanted or (_flag(wanted) is not None and _flag(str(now)) == _flag(wanted))


def _flag(value: str) -> bool | None:
    return {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }.get(value.strip().lower())
