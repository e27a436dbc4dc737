"""Functions of ``pkg`` for zypper's repositories: files in /etc/zypp/repos.d, which zypper writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from statecore.builtin.modules.pkg_zypper import zypper
from statecore.host.content import managed_file
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.system.hostfiles import yum_repos

_DIRECTORY = "/etc/zypp/repos.d"

#: Priority of a repository whose file has none.
_PRIORITY = 99

#: Argument of ``pkg.mod_repo`` that is a switch -> its key in the file, and zypper's options for True and False.
_SWITCHES: Mapping[str, tuple[str, str, str]] = {
    "enabled": ("enabled", "--enable", "--disable"),
    "refresh": ("autorefresh", "--refresh", "--no-refresh"),
    "cache": ("keeppackages", "--keep-packages", "--no-keep-packages"),
    "gpgcheck": ("gpgcheck", "--gpgcheck", "--no-gpgcheck"),
}

_LOCATIONS = ("url", "mirrorlist", "baseurl")


def list_repos(ctx: Context, root: str | None = None, **kwargs: object) -> dict[str, dict[str, object]]:
    """Return a map of repository to its options, of which 0 and 1 are booleans and NONE is None, and to ``alias``.

    CLI Example:

        salt '*' pkg.list_repos
    """
    directory = f"{(root or '').rstrip('/')}{_DIRECTORY}"
    top = ctx.host.path(directory)
    found: dict[str, dict[str, object]] = {}
    for path in sorted(top.glob("*.repo")) if top.is_dir() else ():
        name = f"{directory}/{path.name}"
        text = (managed_file.read(ctx.host.path(name), name) or b"").decode("utf-8", "replace")
        for alias, options in yum_repos.sections(text).items():
            facts = {key: _value(value) for key, value in options.items() if key != "comments"}
            found[alias] = found.get(alias, {}) | facts | {"alias": alias}
    return found


def get_repo(ctx: Context, repo: str, root: str | None = None, **kwargs: object) -> dict[str, object]:
    """Return a map of option to value of a repository; {} if the host does not have it.

    CLI Example:

        salt '*' pkg.get_repo updates
    """
    return list_repos(ctx, root).get(repo, {})


def del_repo(ctx: Context, repo: str, root: str | None = None, **kwargs: object) -> dict[str, object]:
    """Remove a repository. Return {repository: True, "message": zypper's message}. Raise CommandError if the host does not have
    it.

    CLI Example:

        salt '*' pkg.del_repo vendor
    """
    if repo not in list_repos(ctx, root):
        raise CommandError(f"Repository '{repo}' not found.")
    told = zypper.order_xml(ctx, "rr", "--loose-auth", "--loose-query", repo, root=root)
    return {repo: True, "message": next((each.text or "" for each in told.iter("message")), "")}


def mod_repo(ctx: Context, repo: str, **kwargs: Any) -> dict[str, object]:
    """Add or change a repository with zypper. Return its options. Raise CommandError for a new repository without an address,
    or if zypper fails.

    url, mirrorlist or baseurl
        address of the packages. If the ``baseurl`` of a repository changes, zypper removes and adds the repository
    name (or humanname)
        text that describes the repository
    enabled, gpgcheck
        True or False: whether zypper uses the repository; whether it checks signatures
    refresh
        True or False: whether zypper fetches old metadata by itself
    cache
        True or False: whether zypper keeps the files of packages
    priority
        number; repositories with a lower one are preferred, the default is 99
    gpgautoimport
        True: fetch the metadata of the repository, and import its new keys without a question

    CLI Example:

        salt '*' pkg.mod_repo vendor baseurl=https://v.test/leap gpgautoimport=True
    """
    root = kwargs.get("root") or None
    known = list_repos(ctx, root)
    added = repo not in known
    wanted = dict(kwargs)
    if added:
        _add(ctx, repo, _address(repo, kwargs, known), root)
    elif "baseurl" in kwargs and kwargs["baseurl"] != known[repo].get("baseurl"):
        wanted = _settings(known[repo]) | ({"name": wanted["humanname"]} if wanted.get("humanname") else {}) | wanted
        address = _address(repo, {"baseurl": kwargs["baseurl"]}, {key: known[key] for key in known if key != repo})
        del_repo(ctx, repo, root)
        _add(ctx, repo, address, root)
        added = True
    options = _options(wanted)
    if options:
        zypper.order_xml(ctx, "mr", *options, repo, root=root, refresh=True)
    if kwargs.get("gpgautoimport") is True:
        zypper.refresh(ctx, force=kwargs.get("force"), root=root, trust_keys=True, repositories=[repo])
    elif not added and not options:
        return get_repo(ctx, repo, root) | {"comment": "Specified arguments did not result in modification of repo"}
    return get_repo(ctx, repo, root)


def repo_changes(ctx: Context, repo: str, **kwargs: object) -> dict[str, object]:
    """Return the changes that ``pkg.mod_repo`` would make to a repository: {argument: {"old", "new"}}. Return
    ``{"repo": repo}`` for a new one, {} for none. Raise InvocationError for a new one that cannot be added.
    """
    known = list_repos(ctx)
    if repo not in known:
        try:
            _address(repo, kwargs, known)
        except CommandError as error:
            raise InvocationError(f"Failed to configure repo '{repo}': {error}") from error
        return {"repo": repo}
    now = known[repo]
    wanted = {key: kwargs[key] for key in ("name", "baseurl", "priority", *_SWITCHES) if kwargs.get(key) is not None}
    if kwargs.get("humanname") is not None:
        wanted.setdefault("name", kwargs["humanname"])
    changes: dict[str, object] = {}
    for key, value in wanted.items():
        stored = now.get(_SWITCHES[key][0] if key in _SWITCHES else key)
        new: object = value
        if key in _SWITCHES:
            # A repository without these options is enabled, and checked; the other two are off.
            old = bool(stored) if stored is not None else key in ("enabled", "gpgcheck")
            new = _switch(value)
            same = old == new
        elif key == "priority":
            new = str(value)
            same = str(_PRIORITY if stored is None else stored) == new
        else:
            same = str(stored) == str(value)
        if not same:
            changes[key] = {"old": stored, "new": new}
    return changes


def _address(repo: str, given: Mapping[str, object], known: Mapping[str, Mapping[str, object]]) -> str:
    """Return the address of a new repository from the arguments. Raise CommandError if there is none, or another repository has
    it.
    """
    url = next((str(given[key]) for key in _LOCATIONS if given.get(key)), "")
    if not url:
        raise CommandError(f"Repository '{repo}' not found, and neither 'baseurl' nor 'mirrorlist' was specified")
    if not urlsplit(url).scheme:
        raise CommandError(f"Repository '{repo}' not found and URL for baseurl/mirrorlist is malformed")
    for alias, options in known.items():
        if _complete(url) == _complete(str(options.get("baseurl") or "")):
            raise CommandError(f"Repository '{repo}' already exists as '{alias}'.")
    return url


def _complete(url: str) -> str:
    parts = urlsplit(url)
    return url if parts.path or not parts.netloc else parts._replace(path="/").geturl()


def _add(ctx: Context, repo: str, url: str, root: str | None) -> None:
    zypper.order_xml(ctx, "ar", url, repo, root=root)
    if repo not in list_repos(ctx, root):
        raise CommandError(
            f"Failed add new repository '{repo}' for unspecified reason. Please check zypper logs (/var/log/zypper.log)."
        )


def _options(given: Mapping[str, object]) -> list[str]:
    """Return the options of ``zypper mr`` for the arguments of ``pkg.mod_repo``."""
    words = [
        (yes if _switch(given[key]) else no)
        for key, (_, yes, no) in _SWITCHES.items()
        if key in given and given[key] is not None
    ]
    if given.get("priority") is not None:
        words.append(f"--priority={given['priority']}")
    name = given.get("name") or given.get("humanname")
    return [*words, "--name", str(name)] if name else words


def _settings(now: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of ``pkg.mod_repo`` that give a repository the options which it has now."""
    kept = {key: now[stored] for key, (stored, _, _) in _SWITCHES.items() if now.get(stored) is not None}
    return kept | {key: now[key] for key in ("name", "priority") if now.get(key) is not None}


def _switch(value: object) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "on") if isinstance(value, str) else bool(value)


def _value(value: object) -> object:
    if value in ("0", "1"):
        return value == "1"
    return None if value == "NONE" else value
