"""The options of stock masters and minions that are no fields of our option tables: which have no effect, which are refused.

Rule: a stock configuration starts. An option without effect is accepted, and named in one line when a role starts. An option is
refused only where its value asks for something that would be missed, such as TLS. The names are those of Salt's
salt/config/__init__.py, 3006 to 3008; a test holds each of them.

The module is imported only where a configuration names such an option.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import NamedTuple


class StockOption(NamedTuple):
    """The treatment of an option of stock Salt: refused or without effect, and the reason."""

    refused: bool
    #: The reason, as the end of a sentence; for a refused option what to do instead.
    why: str


class _Refusal(NamedTuple):
    why: str
    #: Values that ask for nothing, besides null, false, 0 and what is empty.
    harmless: tuple[object, ...] = ()


_STARTER = "what starts the process decides it"
_PORTS = "processes speak over ports, and ZeroMQ keeps its connections"
_ALWAYS = "it is always so"
_GONE = "nothing here needs it"
_NO_WINDOWS = "there are no Windows minions here"
_NO_THORIUM = "thorium is not here; the reactor is"
_NO_SYNDIC = "there are no syndics here"
_NO_RESOURCES = "Salt's resources are not here"
_NO_SSH = "salt-ssh is not here"
_NO_TREES = "files come from file_roots and git"
_METRICS = "health_port serves /metrics"
_CACHES = "the master remembers everything in Redis"
_PROCESSES = "each worker is a process: start more of mworker"
_UPDATES = "the host's package manager brings a newer minion"
_RIGHTS = "rights are rows of control_acl and publisher_acl"
_ID = "one master has as many roles as it needs"

#: Glob of option names -> why the option has no effect, on master and minion.
_BOTH: Mapping[str, str] = {
    "pidfile": "salt-minion -d and salt-master -d write it, other starts need none",
    "umask": _STARTER,
    "verify_env": _STARTER,
    "max_open_files": _STARTER,
    "sock_dir": _PORTS,
    "sock_pool_size": _PORTS,
    "ipc_*": _PORTS,
    "tcp_*": _PORTS,
    "zmq_*": _PORTS,
    "ipv6": "the address in interface, or the master's, decides it",
    "log_fmt_jid": "each line has its JID",
    "log_fmt_minion_id": "each line has its minion",
    "features": "what a feature switches on is always on: x509 is x509_v2",
    "optimization_order": _GONE,
    "event_match_type": _GONE,
    "cache_sreqs": _GONE,
    "disable_aes_with_tls": _GONE,
    "use_os_truststore": "ca_bundle and the system's certificates are used",
    "gpg_cache*": "decrypted values are written to no disk; a message is decrypted once for each rendering",
    "local": "--local says it",
    "loop_interval": _GONE,
    "salt_cp_chunk_size": "salt-cp chooses its chunks by itself",
    "ssh_merge_pillar": _NO_SSH,
    "unique_jid": _ALWAYS,
    "username": _RIGHTS,
    "password": _RIGHTS,
    "eauth": _RIGHTS,
    "winrepo_*": _NO_WINDOWS,
    "win_repo*": _NO_WINDOWS,
    "key_logfile": "log_file says it",
    "thorium*": _NO_THORIUM,
    "resource*": _NO_RESOURCES,
    "svnfs_*": _NO_TREES,
    "hgfs_*": _NO_TREES,
    "s3fs_*": _NO_TREES,
    "azurefs_*": _NO_TREES,
    "metrics": _METRICS,
    "update_*": _UPDATES,
    "saltpip_*": "salt-pip is not here",
    "snapper_*": "snapper is not here",
    "bootstrap_delay": "salt-cloud is not here",
    "keys.cache_driver": _CACHES,
    "pillar.cache_driver": _CACHES,
    "cache": _CACHES,
    "add_proxymodule_to_opts": "there are no proxy minions here",
    "proxy_*": "there are no proxy minions here",
    "pass_to_ext_pillars": "external pillars get what they name",
}

_MINION: Mapping[str, str] = {
    "auth_retries": "auth_tries says it",
    "autosign_timeout": "it is the master's",
    "auto_accept": "it is the master's",
    "cluster_mode": _ID,
    "cmd_safe": _ALWAYS,
    "discovery": "name the master in master",
    "enable_lspci": "no program is run for grains",
    "ext_job_cache": "it is the master's",
    "file_recv*": "it is the master's",
    "grains_cache*": "grains are gathered in a fraction of a second, when the minion starts and when they are refreshed",
    "grains_refresh_pre_exec": _ALWAYS,
    "interface": "it is the master's",
    "keysize": _GONE,
    "master_uri_format": "an address may have a port: host:port",
    "max_event_size": "it is the master's",
    "minion_memory_*": "the container's or the unit's memory limit does it",
    "modules_max_memory": "the container's or the unit's memory limit does it",
    "minion_restart_command": _STARTER,
    "permissive_pki_access": _STARTER,
    "restart_on_error": _STARTER,
    "minion_sign_messages": "messages are bound to the minion's session",
    "multifunc_ordered": _ALWAYS,
    "pub_ret": _ALWAYS,
    "publisher_acl*": "it is the master's",
    "reactor*": "reactions are the master's",
    "resolve_dns_fallback": _ALWAYS,
    "return_retry_tries": "a return is sent until the master has it",
    "syndic_*": _NO_SYNDIC,
    "use_master_when_local": "file_client: remote says it",
    "scheduler_before_connect": "a minion without a master runs its schedule: master_type: disable",
    "beacons_before_connect": "a minion without a master runs its beacons: master_type: disable",
    "pillar_opts": "it is the master's",
    "master_sign_key_name": "verify_master_pubkey_sign is not here",
    "always_verify_signature": "verify_master_pubkey_sign is not here",
    "ping_on_rotate": "it is the master's",
}

_MASTER: Mapping[str, str] = {
    "*_niceness": _STARTER,
    "master_*mworker*": _PROCESSES,
    "maintenance_interval": "loop_interval says it",
    "pki_dir": "saltern import brings its keys",
    "cachedir": _CACHES,
    "sqlite_queue_dir": _CACHES,
    "queue_dirs": _CACHES,
    "key_cache": _CACHES,
    "con_cache": _CACHES,
    "memcache_*": _CACHES,
    "cache.*": _CACHES,
    "job_cache_store_endtime": _CACHES,
    "minion_data_cache_events": _GONE,
    "enforce_mine_cache": "it is always so: the mine is stored whatever minion_data_cache says",
    "pillar_gitfs_ssl_verify": "gitfs_ssl_verify and the remote's own ssl_verify say it",
    "pillar_raise_on_missing": "it is the minion's",
    "pass_*": "external pillars run with the environment of mworker",
    "reactor_refresh_interval": "a reaction reads its file each time",
    "search": _GONE,
    "serial": _GONE,
    "dummy_pub": _GONE,
    "auth_mode": _GONE,
    "runner_returns": _ALWAYS,
    "pub_hwm": _PORTS,
    "pub_server_write_queue_size": _PORTS,
    "publish_timeout": "a publication is one transaction",
    "publish_drain_timeout": "a publication is one transaction",
    "auth_events": _ALWAYS,
    "auth_events_*": _ALWAYS,
    "require_minion_sign_messages": "messages of minions are bound to their session",
    "drop_messages_signature_fail": "messages of minions are bound to their session",
    "request_server_aes_session": "publish_session says it",
    "ping_on_rotate": "a minion signs in again at the first publication under a new key, and loses no job; nobody has to ping it",
    "enable_gpu_grains": "a master gathers no grains",
    "clean_dynamic_modules": "saltutil.sync_all removes what is gone",
    "master_roots": "the master's own states are those of file_roots",
    "master_stats*": _METRICS,
    "detect_remote_minions": "presence comes from the minions' requests",
    "remote_minions_port": "presence comes from the minions' requests",
    "preserve_minion_cache": "salt-key --preserve-minions says it for one deletion",
    "pillar_version": _ALWAYS,
    "pillar_mask_output": "it is the minion's",
    "lock_saltenv": "it is the minion's",
    "saltenv": "it is the minion's",
    "test": "it is the minion's",
    "file_client": "a master has its own files",
    "cluster_*": _ID,
    "ssh_*": _NO_SSH,
    "roster": "salt-ssh is not here; manage.safe_accept reads roster_file",
    "roster_defaults": "salt-ssh is not here; manage.safe_accept reads ssh_user, ssh_port and ssh_priv",
    "rosters": "salt-ssh is not here; manage.safe_accept reads roster_file",
    "regen_thin": _NO_SSH,
    "thin_*": _NO_SSH,
    "min_extra_mods": _NO_SSH,
    "enable_ssh_minions": _NO_SSH,
    "syndic_*": _NO_SYNDIC,
    "client_acl_verify": _RIGHTS,
    "sudo_acl": _RIGHTS,
    "keep_acl_in_token": "the rights of a token are those that external_auth has when it is used",
    "eauth_acl_module": "the backend that signs a user in names the user's groups",
    "eauth_tokens*": _CACHES,
    "token_dir": _CACHES,
    "django_*": _RIGHTS,
    "netapi_*": "the API has no client ssh, and no log file of its own",
    "rest_timeout": "a request ends with its own timeout",
    "rest_tornado": "the API reads rest_cherrypy",
    "rest_wsgi": "the API reads rest_cherrypy",
    "api_*": "the API writes its log as every role does",
    "discovery": "minions name their master",
    "syndic_user": _NO_SYNDIC,
}

_REFUSED_BY_BOTH: Mapping[str, _Refusal] = {
    "ssl": _Refusal("minions and master speak ZeroMQ, which has no TLS; messages are encrypted by Salt's own protocol"),
    "transport": _Refusal("minions and master speak ZeroMQ alone", ("zeromq", "detect")),
    "fips_mode": _Refusal("name the algorithms: publish_signing_algorithm, encryption_algorithm, signing_algorithm"),
}

_REFUSED_BY_MINION: Mapping[str, _Refusal] = {
    **_REFUSED_BY_BOTH,
    "verify_master_pubkey_sign": _Refusal("name the fingerprint of the master's key in master_finger"),
    "proxy": _Refusal("there are no proxy minions here"),
}

_REFUSED_BY_MASTER: Mapping[str, _Refusal] = {
    **_REFUSED_BY_BOTH,
    "order_masters": _Refusal(_NO_SYNDIC),
    "syndic_master": _Refusal(_NO_SYNDIC, ("masterofmasters",)),
    "cluster_id": _Refusal(_ID),
    "key_pass": _Refusal("take the passphrase of master.pem away: openssl rsa -in OLD -out NEW"),
    "signing_key_pass": _Refusal("take the passphrase of master_sign.pem away: openssl rsa -in OLD -out NEW"),
}


def treatment(name: str, value: object, *, minion: bool) -> StockOption | None:
    """Return the treatment of a stock option with this value in a minion's or a master's configuration.

    None if the tables of stock options do not contain the name; the name is then the user's own key.
    """
    refusal = (_REFUSED_BY_MINION if minion else _REFUSED_BY_MASTER).get(name)
    if refusal is not None:
        if not value or value in refusal.harmless:
            return StockOption(refused=False, why="its value asks for nothing")
        return StockOption(refused=True, why=refusal.why)
    for table in (_MINION if minion else _MASTER, _BOTH):
        why = next((why for glob, why in table.items() if fnmatch.fnmatchcase(name, glob)), None)
        if why is not None:
            return StockOption(refused=False, why=why)
    return None


def without_effect(*, minion: bool) -> dict[str, str]:
    """Map of stock option, or glob of such options, to the reason why it has no effect on a minion or a master."""
    return {**_BOTH, **(_MINION if minion else _MASTER)}
