"""The treatment of each option of a stock master. Names and meanings are those of Salt's salt/config/__init__.py."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Mapping
from typing import NamedTuple

from saltern.kit.config import stock_options
from saltern.kit.config.master import ConfigError, MasterOptions, check_master_option
from statecore.model.errors import TargetError
from statecore.targeting.match import compile_target

#: Options of Saltern that Salt does not have, or that mean something else in Salt.
_NOT_SALTS = frozenset(
    (
        *("aes_rotation_interval", "control_acl", "control_port", "event_pub_port", "event_pull_port"),
        *("eventpublisher_host", "ext_pillar_timeout", "health_host", "health_port", "internal_interface"),
        *(
            "jinja_dns_check",
            "jinja_http_query",
            "jinja_time_limit",
            "key_dir",
            "log_format",
            "max_pending_keys",
            "max_request_bytes",
            "module_settings",
        ),
        *(
            "out_table",
            "presence_window",
            "published_port",
            "redis_url",
            "replay_window",
            "reqserver_host",
            "ret_port_shared",
        ),
        *("redis_sentinels", "redis_sentinel_master", "redis_sentinel_user", "redis_sentinel_password", "redis_user"),
        *("redis_password", "redis_db", "redis_tls", "redis_tls_ca", "redis_tls_cert", "redis_tls_key"),
        *("request_deadline", "request_deadlines", "max_waiting_bytes", "max_waiting_requests"),
        *("minion_requests_at_once", "user", "worker_max_requests", "worker_max_rss", "worker_pool"),
        *("worker_silence", "worker_threads", "workers_port"),
    )
)

#: Options of the stock master's machine, which roles in containers do without.
_OF_THE_MACHINE = frozenset(
    (
        *("default_include", "include", "root_dir", "log_file", "log_level_logfile", "log_granular_levels"),
        *("log_fmt_console", "log_fmt_logfile", "log_datefmt", "log_datefmt_console", "log_datefmt_logfile"),
        *("log_rotate_backup_count", "log_rotate_max_bytes"),
    )
)

#: Options with the same meaning in Salt and Saltern.
_OURS = frozenset(item.name for item in dataclasses.fields(MasterOptions)) - _NOT_SALTS - _OF_THE_MACHINE

_PROCESSES = "roles are processes of their own: start more of mworker"
_PLACES = "roles keep nothing on disk"
_CACHES = "what a master remembers is in Redis"
_LOGS = "roles log to stderr"
_GONE = "roles have no use for it"

#: Glob of option names -> why the option is not needed. The first match counts.
_NOT_NEEDED: Mapping[str, str] = {
    "worker_threads": _PROCESSES,
    "*_niceness": _PROCESSES,
    "max_open_files": _PROCESSES,
    "master_*mworker*": _PROCESSES,
    "maintenance_interval": "loop_interval says it",
    "user": "a role runs as who starts it",
    "verify_env": "a role runs as who starts it",
    "root_dir": _PLACES,
    "pki_dir": "its keys are imported",
    "cachedir": _CACHES,
    "sqlite_queue_dir": _CACHES,
    "sock_dir": "roles speak over ports",
    "ipc_*": "roles speak over ports",
    "tcp_master_*": "roles speak over ports",
    "sock_pool_size": "roles speak over ports",
    "pidfile": "what starts a role knows its process",
    "conf_file": "--config-dir says it",
    "default_include": "master.d/*.conf is read",
    "include": "what it names is part of what is imported",
    "log_file": _LOGS,
    "key_logfile": _LOGS,
    "log_level_logfile": _LOGS,
    "log_rotate_*": _LOGS,
    "log_fmt_*": "log_format says it",
    "log_datefmt*": "log_format says it",
    "log_granular_levels": _LOGS,
    "job_cache_store_endtime": _CACHES,
    "key_cache": _CACHES,
    "keys.cache_driver": _CACHES,
    "pillar.cache_driver": _CACHES,
    "cache": _CACHES,
    "cache.*": _CACHES,
    "memcache_*": _CACHES,
    "con_cache": "who is connected is in Redis",
    "minion_data_cache_events": _GONE,
    "cache_sreqs": _GONE,
    "search": _GONE,
    "serial": _GONE,
    "dummy_pub": _GONE,
    "cython_enable": _GONE,
    "zmq_backlog": _GONE,
    "zmq_monitor": _GONE,
    "pub_hwm": _GONE,
    "pub_server_write_queue_size": _GONE,
    "optimization_order": _GONE,
    "tcp_keepalive*": "connections are kept alive always",
    "unique_jid": "JIDs are unique always",
    "auth_events": "they are always fired",
    "publish_timeout": "a publication is one transaction",
    "publish_drain_timeout": "a publication is one transaction",
    "require_minion_sign_messages": "messages of minions are bound to their session",
    "request_server_aes_session": "publish_session says it",
    "ping_on_rotate": "minions notice a new key by themselves",
    "enable_gpu_grains": "a master gathers no grains",
    "master_stats*": "/metrics tells them",
    "metrics": "/metrics tells them",
}

#: Glob of option names -> what to do instead of the missing option.
_INSTEAD: Mapping[str, str] = {
    "hgfs_*": "check the repository out and name the directory in file_roots",
    "svnfs_*": "check the repository out and name the directory in file_roots",
    "s3fs_*": "bring the files to a directory of file_roots",
    "external_auth": "who may do what is said by keys: control_acl",
    "sudo_acl": "who may do what is said by keys: control_acl",
    "token_expire*": "who may do what is said by keys: control_acl",
    "eauth_*": "who may do what is said by keys: control_acl",
    "rest_*": "there is no REST here yet",
    "netapi_*": "there is no REST here yet",
    "syndic_*": "there are no syndics here",
    "order_masters": "there are no syndics here",
    "cluster_*": "one master has as many roles as it needs",
    "ssh_*": "there is no salt-ssh here",
    "winrepo_*": "there are no Windows minions here",
    "thorium*": "the reactor is here, thorium is not",
    "ipv6": "name an address in interface",
    "ssl": "minions are spoken to over ZeroMQ, which has no TLS",
    "key_pass": "take the passphrase of master.pem away: openssl rsa -in OLD -out NEW",
    "signing_key_pass": "take the passphrase of master_sign.pem away: openssl rsa -in OLD -out NEW",
    "client_acl_verify": "who may do what is said by keys: control_acl",
    "permissive_acl": "who may do what is said by keys: control_acl",
    "keep_acl_in_token": "who may do what is said by keys: control_acl",
    "django_*": "there is no REST here yet",
    "discovery": "minions name their master",
    "thin_*": "there is no salt-ssh here",
    "regen_thin": "there is no salt-ssh here",
    "min_extra_mods": "there is no salt-ssh here",
    "enable_ssh_minions": "there is no salt-ssh here",
}

#: Options that are supported for some values only: name -> (values, why they are not needed, text for other values).
_BY_VALUE: Mapping[str, tuple[tuple[object, ...], str, str]] = {
    "transport": (("zeromq", "detect"), "ZeroMQ is what there is", "minions are spoken to over ZeroMQ alone"),
    "file_client": (("remote",), "of minions alone", "a master has its own files"),
    "order_masters": ((False,), "as here", _INSTEAD["order_masters"]),
    "ipv6": ((False, None), "as here", _INSTEAD["ipv6"]),
    "preserve_minion_cache": ((False,), "as here", "salt-key --preserve-minions=True says it for one deletion"),
}


_RETURNERS = frozenset({"local_cache", "redis", "redis_return"})

#: Options that name modules -> (built-in modules, option for the directory of users' modules).
_MODULES: Mapping[str, tuple[frozenset[str], str]] = {
    "ext_pillar": (frozenset({"cmd_json", "cmd_yaml", "file_tree", "git", "stack"}), "pillar_dirs"),
    "master_tops": (frozenset({"ext_nodes"}), "top_dirs"),
    "fileserver_backend": (frozenset({"roots", "git", "gitfs", "minion", "minionfs"}), "fileserver_dirs"),
    "event_return": (frozenset(), "returner_dirs"),
    "ext_job_cache": (_RETURNERS, "returner_dirs"),
    "master_job_cache": (_RETURNERS, "returner_dirs"),
}


class Fate(NamedTuple):
    """The treatment of an option by ``saltern import``, with the reason, and the options of Saltern that replace it.

    ``kind`` is ``carries``, ``not needed`` or ``not supported``.
    """

    kind: str
    why: str = ""
    #: Options of Saltern with the same effect.
    here: Mapping[str, object] = {}


def fate_of(name: str, value: object) -> Fate:
    """Return the Fate of a stock master's option with this value: carried over, not needed, or not supported, with the reason."""
    if name == "keep_jobs":
        if isinstance(value, bool) or not isinstance(value, int | float):
            return Fate("not supported", f"must be a number of hours, not {value!r}")
        return Fate("carries", "as keep_jobs_seconds", {"keep_jobs_seconds": int(value * 3600)})
    if name == "publisher_acl" and value:
        made = _checked(name, value)
        why = "its users are names of keys: saltern keygen --operator NAME"
        return made._replace(why=why) if made.kind == "carries" else made
    if name in _MODULES:
        return _of_modules(name, value)
    if name in _OURS:
        # Checked even if the tables below list it.
        return _checked(name, value)
    if name in _BY_VALUE:
        values, same, instead = _BY_VALUE[name]
        return Fate("not needed", same) if value in values else Fate("not supported", instead)
    if not_needed := _said(_NOT_NEEDED, name):
        return Fate("not needed", not_needed)
    if instead := _said(_INSTEAD, name):
        return Fate("not supported", instead)
    if name in _NOT_SALTS:
        return Fate("not supported", "means something of its own here; see docs/config.md")
    if stock := stock_options.treatment(name, value, minion=False):
        return Fate("not supported" if stock.refused else "not needed", stock.why)
    made = _checked(name, value)
    # Settings of modules have a dot.
    own = made.kind == "carries" and "." not in name
    return made._replace(why="a key of your own") if own else made


def group_faults(groups: Mapping[str, object]) -> dict[str, str]:
    """Return the map of each invalid node group to its error. Range expressions are not evaluated."""
    faults: dict[str, str] = {}
    for name in groups:
        try:
            compile_target(name, "nodegroup", nodegroups=groups, ranges=lambda text: [])
        except TargetError as error:
            faults[name] = str(error)
    return faults


def _of_modules(name: str, value: object) -> Fate:
    """Return the treatment of an option that lists modules: it carries over, and names the modules that the user must provide."""
    fate = _checked(name, value)
    here, directory = _MODULES[name]
    own = [each for each in _named(value) if each not in here]
    if fate.kind != "carries" or not own:
        return fate
    return fate._replace(why=f"not built in: {', '.join(own)}; to be yours, in {directory} or extension_modules")


def _named(value: object) -> list[str]:
    """Return the names of modules in an option's value: a text with commas, a map, or a list of names and maps."""
    if isinstance(value, str):
        return [name.strip() for name in value.split(",") if name.strip()]
    if isinstance(value, Mapping):
        return [str(name) for name in value]
    parts = [_named(each) for each in value] if isinstance(value, list) else []
    return [name.removeprefix("-") for part in parts for name in part]


def _checked(name: str, value: object) -> Fate:
    try:
        check_master_option(name, value)
    except ConfigError as error:
        return Fate("not supported", str(error).removeprefix(f"{name}: "))
    return Fate("carries", "", {name: value})


def is_salts(name: str) -> bool:
    """Return whether Salt knows the option of this name, with the same meaning as Saltern."""
    return name not in _NOT_SALTS


def _said(table: Mapping[str, str], name: str) -> str:
    return next((why for pattern, why in table.items() if fnmatch.fnmatchcase(name, pattern)), "")
