"""Git remotes of the options ``gitfs_remotes`` and ``ext_pillar: - git``, each with its own parameters and the common
ones.

Names and meanings of the parameters are Salt's. Faults in the options are reported before anything is fetched.

Salt: salt/utils/gitfs.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from statecore.model.errors import StatecoreError
from statecore.model.nearest import close_matches

GITFS = "gitfs"
PILLAR = "git_pillar"

#: Branch name of a pillar remote that means: the branch with the name of the pillar environment.
ANY_ENV = "__env__"

REF_TYPES = ("branch", "tag", "sha")

REFSPECS = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")

#: ``user@host:path``: an SSH address without a scheme.
_SCP = re.compile(r"[^@:/]+@[^:]+:")


class GitConfigError(StatecoreError):
    """Error: invalid options of Git remotes. The text names the remote, the parameter, and the valid values."""


class SaltenvSettings(NamedTuple):
    """Ref, directory and mountpoint of one saltenv, from a Git remote or from the option ``gitfs_saltenv``; None: not
    set.
    """

    ref: str | None = None
    root: str | None = None
    mountpoint: str | None = None


@dataclass(frozen=True)
class GitRemote:
    """One Git remote of ``gitfs_remotes`` or of the external pillar ``git``, with all its parameters."""

    role: str
    #: Key of the option's entry: the URL; for pillar, the branch and the URL.
    id: str
    url: str
    name: str = ""
    #: For pillar: the branch to compile; ``__env__``: the branch with the name of the pillar environment.
    branch: str = ""
    #: For pillar: the pillar environment of the remote; "": the name of the branch.
    env: str = ""
    base: str = "master"
    fallback: str = ""
    root: str = ""
    mountpoint: str = ""
    all_saltenvs: str = ""
    saltenv: Mapping[str, SaltenvSettings] = field(default_factory=dict)
    saltenv_whitelist: tuple[str, ...] = ()
    saltenv_blacklist: tuple[str, ...] = ()
    disable_saltenv_mapping: bool = False
    ref_types: tuple[str, ...] = REF_TYPES
    refspecs: tuple[str, ...] = REFSPECS
    update_interval: int = 60
    depth: int = 0
    ssl_verify: bool = True
    proxy: str = ""
    user: str = ""
    password: str = ""
    insecure_auth: bool = False
    pubkey: str = ""
    privkey: str = ""
    passphrase: str = ""

    @property
    def shown(self) -> str:
        """Id of the Git remote without the password in its URL, for messages."""
        return without_password(self.id)

    def place(self, saltenv: str) -> tuple[str, str]:
        """Return (directory in the Git repository, mountpoint in the state tree) of a saltenv, without slashes at the
        ends.
        """
        own = self.saltenv.get(saltenv, SaltenvSettings())
        root = self.root if own.root is None else own.root
        mountpoint = self.mountpoint if own.mountpoint is None else own.mountpoint
        return root.strip("/"), mountpoint.strip("/")


def without_password(url: str) -> str:
    """Return a URL (or ``branch URL``) with its password replaced by ``<redacted>``."""
    return re.sub(r"(://[^/@\s:]*):[^/@\s]*@", r"\1:<redacted>@", url)


def _text(value: object) -> str:
    return str(value)


def _mount(value: object) -> str:
    return str(value).removeprefix("salt://").strip("/")


def _words(value: object) -> tuple[str, ...]:
    given = value if isinstance(value, list | tuple) else str(value).split(",")
    return tuple(str(each).strip() for each in given if str(each).strip())


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be a whole number, not below 0")
    return value


def _ref_types(value: object) -> tuple[str, ...]:
    found = tuple(each.lower() for each in _words(value))
    if wrong := [each for each in found if each not in REF_TYPES]:
        raise ValueError(f"knows {', '.join(REF_TYPES)}, not {', '.join(wrong)}")
    return found


def _envs(value: object) -> Mapping[str, SaltenvSettings]:
    kinds: Mapping[str, Callable[[object], str]] = {"ref": _text, "root": _text, "mountpoint": _mount}
    found: dict[str, SaltenvSettings] = {}
    for env, settings in _joined(value).items():
        places = _joined(settings)
        if wrong := [name for name in places if name not in kinds]:
            raise ValueError(f"knows {', '.join(kinds)} of '{env}', not {', '.join(wrong)}")
        found[env] = SaltenvSettings(**{name: kinds[name](each) for name, each in places.items()})
    return found


def _joined(value: Any) -> dict[str, Any]:
    """Return a map, or the items of a list of maps, as one map. Raises ValueError for other values."""
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, Mapping) for part in parts):
        raise ValueError("must be a list of `name: value`")
    return {str(name): each for part in parts for name, each in part.items()}


#: Parameter -> function that checks and converts its value. Raises ValueError.
_KINDS: Mapping[str, Callable[[object], object]] = {
    **dict.fromkeys(("base", "fallback", "root", "proxy"), _text),
    **dict.fromkeys(("user", "password", "pubkey", "privkey", "passphrase"), _text),
    **dict.fromkeys(("name", "all_saltenvs", "env", "branch"), _text),
    **dict.fromkeys(("ssl_verify", "insecure_auth", "disable_saltenv_mapping"), _flag),
    **dict.fromkeys(("saltenv_whitelist", "saltenv_blacklist", "refspecs"), _words),
    **dict.fromkeys(("depth", "update_interval"), _number),
    "mountpoint": _mount,
    "ref_types": _ref_types,
    "saltenv": _envs,
}

_BOTH = (
    *(
        "base",
        "fallback",
        "root",
        "mountpoint",
        "ssl_verify",
        "refspecs",
        "ref_types",
        "disable_saltenv_mapping",
        "proxy",
    ),
    *("depth", "user", "password", "insecure_auth", "pubkey", "privkey", "passphrase", "name", "all_saltenvs"),
    "update_interval",
)

#: Role -> parameters of a single remote.
_OWN: Mapping[str, tuple[str, ...]] = {
    GITFS: (*_BOTH, "saltenv", "saltenv_whitelist", "saltenv_blacklist"),
    PILLAR: (*_BOTH, "env"),
}

#: Parameters without a common option for all remotes.
_ALONE = ("name", "all_saltenvs", "saltenv")

#: Role -> parameters with a common option ``<role>_<parameter>`` for all remotes.
_COMMON: Mapping[str, tuple[str, ...]] = {
    GITFS: tuple(name for name in _OWN[GITFS] if name not in _ALONE),
    PILLAR: (*(name for name in _OWN[PILLAR] if name not in _ALONE), "branch"),
}


def gitfs_remotes(opts: Mapping[str, object]) -> list[GitRemote]:
    """Return the Git remotes of the option ``gitfs_remotes``, in their order. Raise GitConfigError for an invalid URL
    or parameter.
    """
    return _remotes(GITFS, opts.get("gitfs_remotes") or [], opts)


def pillar_remotes(entries: Sequence[object], opts: Mapping[str, object]) -> list[GitRemote]:
    """Return the Git remotes of one ``git`` entry of the option ``ext_pillar``. Raise GitConfigError for an invalid URL
    or parameter.
    """
    return _remotes(PILLAR, entries, opts)


def all_pillar_remotes(opts: Mapping[str, Any]) -> list[GitRemote]:
    """Return the Git remotes of all ``git`` entries of the option ``ext_pillar``. Raise GitConfigError for an invalid
    URL or parameter.
    """
    found = [entry["git"] for entry in opts.get("ext_pillar") or [] if isinstance(entry, Mapping) and "git" in entry]
    return [remote for entries in found for remote in pillar_remotes(entries, opts)]


def _remotes(role: str, entries: object, opts: Mapping[str, object]) -> list[GitRemote]:
    if not isinstance(entries, list | tuple):
        raise GitConfigError(f"{role}: remotes must be a list of URLs, not {entries!r}")
    common = {name: opts[f"{role}_{name}"] for name in _COMMON[role] if opts.get(f"{role}_{name}") is not None}
    try:
        envs = _envs(opts.get("gitfs_saltenv") or []) if role == GITFS else {}
    except ValueError as error:
        raise GitConfigError(f"gitfs_saltenv {error}") from error
    return [_remote(role, entry, common, envs) for entry in entries]


def _remote(role: str, entry: object, common: Mapping[str, object], envs: Mapping[str, SaltenvSettings]) -> GitRemote:
    if isinstance(entry, Mapping):
        if len(entry) != 1:
            raise GitConfigError(f"{role}: a remote must be `URL: parameters`, not {entry!r}")
        ((key, parameters),) = entry.items()
        if not parameters:
            raise GitConfigError(f"{role} remote '{without_password(str(key))}' has no parameters: take the colon away")
    else:
        key, parameters = entry, []
    shown = without_password(str(key))
    try:
        own = _joined(parameters) if parameters else {}
    except ValueError as error:
        raise GitConfigError(f"{role} remote '{shown}': its parameters {error}") from error
    known = _OWN[role]
    for name in own:
        if name not in known:
            near = close_matches(name, known, n=1)
            nearest = f"; the nearest is '{near[0]}'" if near else ""
            raise GitConfigError(f"{role} remote '{shown}' has no parameter '{name}'{nearest}")
    given = {**common, **own}
    fields: dict[str, Any] = {}
    for name, value in given.items():
        try:
            fields[name] = _KINDS[name](value)
        except ValueError as error:
            raise GitConfigError(f"{role} remote '{shown}': {name} {error}") from error
    return _checked(_named(role, str(key).strip(), fields, envs), own)


def _named(role: str, key: str, fields: dict[str, Any], envs: Mapping[str, SaltenvSettings]) -> GitRemote:
    if role == PILLAR:
        branch, _, url = key.partition(" ")
        alone = not url.strip()
        common = fields.pop("branch", "master")
        return GitRemote(role, key, key if alone else url.strip(), branch=common if alone else branch, **fields)
    own: Mapping[str, SaltenvSettings] = fields.pop("saltenv", {})
    if (ref := own.get("base", SaltenvSettings()).ref) is not None:
        # The ref of the saltenv base overrides the parameter `base`.
        fields["base"] = ref
    places = {env: _over(envs.get(env, SaltenvSettings()), own.get(env, SaltenvSettings())) for env in {**envs, **own}}
    return GitRemote(role, key, key, saltenv=places, **fields)


def _over(under: SaltenvSettings, own: SaltenvSettings) -> SaltenvSettings:
    return SaltenvSettings(*(below if above is None else above for below, above in zip(under, own, strict=True)))


def _checked(remote: GitRemote, own: Mapping[str, object]) -> GitRemote:
    where = f"{remote.role} remote '{remote.shown}'"
    if not remote.url or remote.url.startswith("-") or any(ord(char) < 33 for char in remote.url):
        raise GitConfigError(f"{where}: '{without_password(remote.url)}' is no URL of a repository")
    if remote.role == PILLAR and "base" in own and remote.branch != ANY_ENV:
        raise GitConfigError(f"{where}: base is for remotes whose branch is {ANY_ENV}")
    scheme = urlsplit(remote.url).scheme
    if remote.password and scheme == "http" and not remote.insecure_auth:
        raise GitConfigError(f"{where}: a password would go over plain http; take https, or set insecure_auth: True")
    if "passphrase" in own and not remote.privkey:
        raise GitConfigError(f"{where}: passphrase without privkey; name the key that it opens")
    if remote.pubkey and not remote.privkey:
        raise GitConfigError(f"{where}: pubkey without privkey; it is privkey that is needed")
    return remote


def authority(url: str) -> str:
    """Return ``scheme://host`` of a Git remote's URL, the server to which its password may be sent; "" for a URL that
    is not http(s).
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], "", "", ""))


def by_ssh(url: str) -> bool:
    """Return True if git reaches the URL by SSH."""
    return urlsplit(url).scheme in ("ssh", "git+ssh") or ("://" not in url and bool(_SCP.match(url)))


def salt_url(path: str, saltenv: str) -> str:
    """Return the ``salt://`` URL of a path of the state tree, with ``?saltenv=`` unless the saltenv is base."""
    return f"salt://{path}" + (f"?saltenv={quote(saltenv)}" if saltenv != "base" else "")
