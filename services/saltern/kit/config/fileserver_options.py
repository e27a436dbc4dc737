"""The options of the master's file server, of Git repositories and of the pillar cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saltern.kit.config.option_fields import Values, option

_REFSPECS = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"]

_REF_TYPES = ["branch", "tag", "sha"]

_TAKEN = "accepted as in Salt, without effect"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class FileserverOptions(Values):
    """The configuration options of the file server, of Git repositories and of the pillar cache.

    MasterOptions and MinionOptions inherit them.
    """

    cachedir: str = option(
        "/var/cache/salt/master",
        "directory of Git mirrors and of files that minions pushed; shared by all workers and maintenance",
    )
    fileserver_backend: list[str] = option(
        ["roots"], "fileserver backends in order of precedence: roots, gitfs, minionfs, users' backends"
    )
    fileserver_dirs: list[str] = option([], "directories of users' fileserver backends")
    fileserver_users_interval: int = option(60, "seconds between two calls of `update` of users' backends")
    fileserver_events: bool = option(False, "fire salt/fileserver/<backend>/update after each update")
    fileserver_limit_traversal: bool = option(False, _TAKEN)
    fileserver_interval: int = option(3600, _TAKEN)
    fileserver_update_niceness: int | None = option(None, _TAKEN)
    fileserver_verify_config: bool = option(True, _TAKEN)
    roots_update_interval: int = option(
        60, "seconds between two checks of file_roots for changes, with fileserver_events"
    )
    minionfs_env: str = option("base", "saltenv of minionfs")
    minionfs_mountpoint: str = option("", "directory in the state tree at which minionfs appears; empty: the root")
    minionfs_whitelist: list[str] = option([], "globs of the only minions whose files are served; empty: all")
    minionfs_blacklist: list[str] = option([], "globs of minions whose files are not served")
    minionfs_update_interval: int = option(60, _TAKEN)
    gitfs_remotes: list[Any] = option([], "Git repositories that are served: URLs, or `URL: parameters`")
    gitfs_base: str = option("master", "branch or tag that becomes the saltenv base")
    gitfs_root: str = option("", "directory inside repositories that is served; empty: all")
    gitfs_mountpoint: str = option("", "directory in the state tree at which repositories appear; empty: the root")
    gitfs_saltenv: list[Any] | dict[str, Any] = option([], "saltenv -> its ref, root, mountpoint")
    gitfs_saltenv_whitelist: list[str] = option([], "globs of the only saltenvs that are served; empty: all")
    gitfs_saltenv_blacklist: list[str] = option([], "globs of saltenvs that are not served")
    gitfs_disable_saltenv_mapping: bool = option(
        False, "serve only base and the saltenvs in gitfs_saltenv, not every branch and tag"
    )
    gitfs_ref_types: list[str] = option(
        _REF_TYPES, "kinds of refs that become saltenvs, in order of precedence: branch, tag, sha"
    )
    gitfs_refspecs: list[str] = option(_REFSPECS, "refspecs that are fetched")
    gitfs_fallback: str = option("", "branch or tag for saltenvs that a repository does not have; empty: none")
    gitfs_update_interval: int = option(60, "seconds between two fetches of the remotes")
    gitfs_depth: int = option(
        0, "number of commits of history that are fetched; 0: all, needed for commits (sha) as saltenvs"
    )
    gitfs_ssl_verify: bool = option(True, "verify the certificates of servers")
    gitfs_proxy: str = option("", "URL of the proxy for http and https; empty: none")
    gitfs_user: str = option("", "user name for https")
    gitfs_password: str = option("", "password or token for https")
    gitfs_insecure_auth: bool = option(False, "allow a password over unencrypted http")
    gitfs_pubkey: str = option("", _TAKEN)
    gitfs_privkey: str = option("", "file of the private SSH key")
    gitfs_passphrase: str = option("", "passphrase of the private SSH key")
    gitfs_provider: str = option("", "accepted as in Salt, without effect: the git command is always used")
    gitfs_global_lock: bool = option(True, _TAKEN)
    git_pillar_base: str = option("master", "branch of the environment base")
    git_pillar_branch: str = option("master", "branch of remotes that name none")
    git_pillar_env: str = option("", "pillar environment of all remotes; empty: each remote's branch")
    git_pillar_root: str = option("", "directory inside repositories that contains the pillar; empty: all")
    git_pillar_fallback: str = option("", "branch for environments that a repository does not have; empty: none")
    git_pillar_includes: bool = option(
        True, "files of one remote may include files of other remotes in the same environment"
    )
    git_pillar_ref_types: list[str] = option(
        _REF_TYPES, "kinds of refs that a branch name may mean, in order of precedence: branch, tag, sha"
    )
    git_pillar_refspecs: list[str] = option(_REFSPECS, "refspecs that are fetched")
    git_pillar_disable_saltenv_mapping: bool = option(False, _TAKEN)
    git_pillar_update_interval: int = option(60, "seconds between two fetches of the remotes")
    git_pillar_depth: int = option(0, "number of commits of history that are fetched; 0: all")
    git_pillar_ssl_verify: bool = option(True, "verify the certificates of servers")
    git_pillar_proxy: str = option("", "URL of the proxy for http and https; empty: none")
    git_pillar_user: str = option("", "user name for https")
    git_pillar_password: str = option("", "password or token for https")
    git_pillar_insecure_auth: bool = option(False, "allow a password over unencrypted http")
    git_pillar_pubkey: str = option("", _TAKEN)
    git_pillar_privkey: str = option("", "file of the private SSH key")
    git_pillar_passphrase: str = option("", "passphrase of the private SSH key")
    git_pillar_provider: str = option("", "accepted as in Salt, without effect: the git command is always used")
    git_pillar_global_lock: bool = option(True, _TAKEN)
    git_pillar_verify_config: bool = option(True, _TAKEN)
    pillar_cache: bool = option(False, "store compiled pillar and compile it again only after pillar_cache_ttl")
    pillar_cache_ttl: int = option(3600, "seconds for which stored pillar is sent without compiling it again")
    pillar_cache_backend: str = option(
        "redis", "accepted as in Salt, without effect: pillar is stored in Redis, encrypted"
    )
