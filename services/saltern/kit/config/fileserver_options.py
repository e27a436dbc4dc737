"""The options of the master's file server, of Git repositories and of the pillar cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saltern.kit.config.option_fields import Values, option

_REFSPECS = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"]

_REF_TYPES = ["branch", "tag", "sha"]

_TAKEN = "taken as Salt's, without effect here"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class FileserverOptions(Values):
    """The options of the file server; MasterOptions and MinionOptions inherit them."""

    cachedir: str = option(
        "/var/cache/salt/master",
        "mirrors of Git repositories, and what minions pushed; one for all workers and maintenance",
    )
    fileserver_backend: list[str] = option(
        ["roots"], "where files come from, in order: roots, gitfs, minionfs, your own"
    )
    fileserver_dirs: list[str] = option([], "directories of users' file server backends")
    fileserver_users_interval: int = option(60, "seconds between two calls of `update` of users' backends")
    fileserver_events: bool = option(False, "salt/fileserver/<backend>/update is fired after each update")
    fileserver_limit_traversal: bool = option(False, _TAKEN)
    fileserver_interval: int = option(3600, _TAKEN)
    fileserver_update_niceness: int | None = option(None, _TAKEN)
    fileserver_verify_config: bool = option(True, _TAKEN)
    roots_update_interval: int = option(60, "seconds between looks for changes in file_roots, with fileserver_events")
    minionfs_env: str = option("base", "environment of minionfs")
    minionfs_mountpoint: str = option("", "directory of the tree that minionfs lies below")
    minionfs_whitelist: list[str] = option([], "globs of minions whose files are served alone; empty: all")
    minionfs_blacklist: list[str] = option([], "globs of minions whose files are not served")
    minionfs_update_interval: int = option(60, _TAKEN)
    gitfs_remotes: list[Any] = option([], "Git repositories that are served: URLs, or `URL: parameters`")
    gitfs_base: str = option("master", "branch or tag of the environment base")
    gitfs_root: str = option("", "directory of repositories that is served")
    gitfs_mountpoint: str = option("", "directory of the tree that repositories lie below")
    gitfs_saltenv: list[Any] | dict[str, Any] = option([], "environment -> its ref, root, mountpoint")
    gitfs_saltenv_whitelist: list[str] = option([], "globs of environments that are served alone; empty: all")
    gitfs_saltenv_blacklist: list[str] = option([], "globs of environments that are not served")
    gitfs_disable_saltenv_mapping: bool = option(False, "only environments of `saltenv` and base are served")
    gitfs_ref_types: list[str] = option(_REF_TYPES, "what may be an environment, in order: branch, tag, sha")
    gitfs_refspecs: list[str] = option(_REFSPECS, "what is fetched")
    gitfs_fallback: str = option("", "branch or tag of environments that a repository does not have")
    gitfs_update_interval: int = option(60, "seconds between two fetches")
    gitfs_depth: int = option(0, "commits of history that are fetched; 0: all, which commits as environments need")
    gitfs_ssl_verify: bool = option(True, "certificates of servers are looked at")
    gitfs_proxy: str = option("", "proxy for http and https")
    gitfs_user: str = option("", "name for https")
    gitfs_password: str = option("", "password or token for https")
    gitfs_insecure_auth: bool = option(False, "a password may go over plain http")
    gitfs_pubkey: str = option("", _TAKEN)
    gitfs_privkey: str = option("", "file of an SSH key")
    gitfs_passphrase: str = option("", "passphrase of that key")
    gitfs_provider: str = option("", "taken as Salt's: it is the git command here, whatever this says")
    gitfs_global_lock: bool = option(True, _TAKEN)
    git_pillar_base: str = option("master", "branch of the environment base")
    git_pillar_branch: str = option("master", "branch of entries that name none")
    git_pillar_env: str = option("", "pillar environment of all entries; empty: by their branch")
    git_pillar_root: str = option("", "directory of repositories that pillar is compiled from")
    git_pillar_fallback: str = option("", "branch of environments that a repository does not have")
    git_pillar_includes: bool = option(True, "entries of one environment find each other's files")
    git_pillar_ref_types: list[str] = option(_REF_TYPES, "what a branch may be, in order: branch, tag, sha")
    git_pillar_refspecs: list[str] = option(_REFSPECS, "what is fetched")
    git_pillar_disable_saltenv_mapping: bool = option(False, _TAKEN)
    git_pillar_update_interval: int = option(60, "seconds between two fetches")
    git_pillar_depth: int = option(0, "commits of history that are fetched; 0: all")
    git_pillar_ssl_verify: bool = option(True, "certificates of servers are looked at")
    git_pillar_proxy: str = option("", "proxy for http and https")
    git_pillar_user: str = option("", "name for https")
    git_pillar_password: str = option("", "password or token for https")
    git_pillar_insecure_auth: bool = option(False, "a password may go over plain http")
    git_pillar_pubkey: str = option("", _TAKEN)
    git_pillar_privkey: str = option("", "file of an SSH key")
    git_pillar_passphrase: str = option("", "passphrase of that key")
    git_pillar_provider: str = option("", "taken as Salt's: it is the git command here, whatever this says")
    git_pillar_global_lock: bool = option(True, _TAKEN)
    git_pillar_verify_config: bool = option(True, _TAKEN)
    pillar_cache: bool = option(False, "compiled pillar is kept, and compiled anew after pillar_cache_ttl")
    pillar_cache_ttl: int = option(3600, "seconds for which kept pillar is handed out")
    pillar_cache_backend: str = option("redis", "where it is kept: redis, sealed, whatever this says")
