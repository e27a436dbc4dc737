"""Functions of ``pkg`` for apk's repositories: the lines of /etc/apk/repositories, and the keys in /etc/apk/keys."""

from __future__ import annotations

from pathlib import PurePosixPath

from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.sources import downloads
from statecore.system.hostfiles import apk_repositories
from statecore.system.hostfiles.apk_repositories import Repository
from statecore.system.packages import package_requests

_FILE = "/etc/apk/repositories"
_KEYS = "/etc/apk/keys"

#: Arguments that raise an error. ``comments`` and other package managers' arguments are ignored.
_REFUSED = ("ppa", "copr", "key_text", "keyid", "keyserver", "clean_file", "consolidate")


def list_repos(ctx: Context, **kwargs: object) -> dict[str, dict[str, object]]:
    """Return a map of URL to a map with line, url, tag, enabled and disabled of each apk repository of the host,
    disabled repositories too.

    CLI Example:

        salt '*' pkg.list_repos
    """
    return {found.url: _described(found) for found in apk_repositories.parse(_text(ctx))}


def get_repo(ctx: Context, repo: str, **kwargs: object) -> dict[str, object]:
    """Return a map with line, url, tag, enabled and disabled of the apk repository in a line such as ``@edge
    https://x.test/main``. Return {} if the host does not have it.
    """
    found = _find(ctx, _parsed(repo))
    return _described(found) if found else {}


def repo_changes(ctx: Context, repo: str, **kwargs: object) -> dict[str, object]:
    """Return the changes that ``pkg.mod_repo`` would make to an apk repository: {part: {"old", "new"}}. Return
    ``{"repo": repo}`` for a new one, {} for none.
    """
    wanted = _wanted(repo, kwargs)
    found = _find(ctx, wanted)
    if found is None:
        return {"repo": repo}
    old, new = _described(found), _described(wanted)
    changes: dict[str, object] = {part: {"old": old[part], "new": new[part]} for part in new if old[part] != new[part]}
    key = kwargs.get("key_url")
    if key and not changes and not ctx.host.path(_key_file(str(key))).is_file():
        return {"key": {"old": "", "new": _key_file(str(key))}}
    return changes


def mod_repo(ctx: Context, repo: str, refresh: bool = True, **kwargs: object) -> dict[str, object]:
    """Add or change an apk repository. A new one is appended to /etc/apk/repositories. Return {repo: the map that
    ``pkg.get_repo`` returns for it}.

    repo
        a line: ``https://x.test/alpine/v3.19/main``, with ``@TAG`` in front for packages that are named with that tag
    enabled, disabled
        whether the repository is used; a disabled repository is kept as a comment
    key_url
        URL of the repository's public key, which is stored in /etc/apk/keys under the file name of the URL
    refresh
        True: fetch the package indexes afterwards

    CLI Example:

        salt '*' pkg.mod_repo '@edge https://dl-cdn.alpinelinux.org/alpine/edge/main'
    """
    changes = repo_changes(ctx, repo, **kwargs)
    wanted = _wanted(repo, kwargs)
    if changes and kwargs.get("key_url"):
        _keep_key(ctx, str(kwargs["key_url"]))
    if changes and "key" not in changes:
        _write(ctx, apk_repositories.with_repository(_text(ctx), wanted))
    if changes and refresh:
        _fetch(ctx, changes)
    return {repo: get_repo(ctx, repo)}


def del_repo(ctx: Context, repo: str, refresh: bool = True, **kwargs: object) -> str:
    """Remove an apk repository. Return a sentence about the removal. Raise CommandError if the repository does not
    exist.
    """
    text = _text(ctx)
    left = apk_repositories.without(text, _parsed(repo))
    if left == text:
        raise CommandError(f"Repo {repo} doesn't exist in {_FILE}")
    _write(ctx, left)
    if refresh:
        _fetch(ctx, {"repo": repo})
    return f"Repo '{repo}' has been removed from {_FILE}."


def _text(ctx: Context) -> str:
    return (managed_file.read(ctx.host.path(_FILE), _FILE) or b"").decode("utf-8", "surrogateescape")


def _write(ctx: Context, text: str) -> None:
    place = ctx.host.path(_FILE)
    managed_file.make_directories(ctx.host, place.parent, managed_file.Attributes(mode=0o755), ctx.host.path("/"))
    attributes = managed_file.Attributes(mode=None if place.exists() else 0o644)
    managed_file.replace(ctx.host, place, text.encode("utf-8", "surrogateescape"), attributes)


def _fetch(ctx: Context, changes: dict[str, object]) -> None:
    try:
        ctx.call("pkg.refresh_db", failhard=True)
    except CommandError as error:
        raise CommandError(f"the indexes could not be fetched: {error}", {"changes": changes}) from error


def _parsed(repo: str) -> Repository:
    found = apk_repositories.parse_line(repo)
    if found is None:
        raise InvocationError(f"Name {repo} is not valid. It is a line of {_FILE}: a URL, or @TAG and a URL")
    return found


def _wanted(repo: str, given: dict[str, object]) -> Repository:
    for name in _REFUSED:
        if given.get(name):
            raise InvocationError(f"not supported: {name}; apk has only lines of {_FILE}, and key_url")
    named = _parsed(repo)
    disabled = given.get("disabled") if given.get("disabled") is not None else not given.get("enabled", True)
    return Repository(named.url, named.tag, disabled=bool(disabled))


def _find(ctx: Context, wanted: Repository) -> Repository | None:
    return next((each for each in apk_repositories.parse(_text(ctx)) if wanted.same_place(each)), None)


def _described(found: Repository) -> dict[str, object]:
    return {
        "line": found.line,
        "url": found.url,
        "tag": found.tag,
        "disabled": found.disabled,
        "enabled": not found.disabled,
    }


def _key_file(url: str) -> str:
    return f"{_KEYS}/{PurePosixPath(url.partition('?')[0]).name}"


def _keep_key(ctx: Context, url: str) -> None:
    path = _key_file(url)
    place = ctx.host.path(path)
    if place.is_file() and url.startswith(downloads.SCHEMES):
        return
    try:
        data = package_requests.fetched(ctx, url.removeprefix("file://")).read_bytes()
    except CommandError as error:
        raise CommandError(f"Error: file not found: {url}: {error}") from error
    if b"BEGIN PUBLIC KEY" not in data:
        raise CommandError(f"Error: failed to add key from {url}: it holds no public key")
    managed_file.make_directories(ctx.host, place.parent, managed_file.Attributes(mode=0o755), ctx.host.path("/"))
    managed_file.replace(ctx.host, place, data, managed_file.Attributes(mode=0o644))
