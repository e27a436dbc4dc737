"""Options of stock minions that Saltern's minion does not have: for each the reason and a replacement.

The module is imported only where a configuration names such an option. Names are those of Salt's config/__init__.py.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping

_LOGS = "the minion logs to stderr, as log_level and log_format say"
_STARTER = "who starts the minion decides"
_PATHS = "name cachedir and pki_dir"
_FETCHED = "take it away: keys, files and pillar are the master's"
_WIRE = "the master is spoken to over ZeroMQ, by master, master_port and publish_port"
_ID = "say id"

#: Glob of option names -> advice. The first matching glob counts.
_TABLE: Mapping[str, str] = {
    "log_file": _LOGS,
    "log_level_logfile": _LOGS,
    "log_fmt_*": _LOGS,
    "log_datefmt*": _LOGS,
    "log_granular_levels": _LOGS,
    "log_rotate_*": _LOGS,
    "pidfile": _STARTER,
    "user": _STARTER,
    "umask": _STARTER,
    "verify_env": _STARTER,
    "permissive_pki_access": _STARTER,
    "minion_restart_command": _STARTER,
    "restart_on_error": _STARTER,
    "root_dir": _PATHS,
    "sock_dir": _PATHS,
    "default_include": "minion.d/*.conf is read",
    "include": "put it into minion.d/*.conf",
    "id_function": _ID,
    "append_domain": _ID,
    "minion_id_*": _ID,
    "grains_cache*": "grains are gathered at the start and when they are refreshed, in a fraction of a second",
    "enable_*_grains": "no program is run for grains",
    "verify_master_pubkey_sign": "name the master's key by master_finger",
    "always_verify_signature": "name the master's key by master_finger",
    "master_sign_key_name": "name the master's key by master_finger",
    "minion_sign_messages": "messages are bound to the minion's session",
    "master_uri_format": _WIRE,
    "transport": _WIRE,
    "ssl": _WIRE,
    "ipv6": _WIRE,
    "source_*": _WIRE,
    "tcp_keepalive*": "connections are kept alive always",
    "tcp_*": _WIRE,
    "zmq_monitor": "the connection is always watched",
    "ipc_*": "there is no local event bus",
    "multifunc_ordered": "functions of one job run in their order",
    "use_master_when_local": "say file_client: remote, or master_type: disable",
    "discovery": "name the master",
    "return_retry_tries": "a return is sent until the master has it",
    "auth_retries": "say auth_tries",
    "pub_ret": "returns are always sent",
    "beacons_before_connect": "master_type: disable is a minion whose beacons and schedule need no master",
    "scheduler_before_connect": "master_type: disable is a minion whose beacons and schedule need no master",
    "engines": "what is to run beside a minion is a process of its own",
    "reactor*": "reactions are the master's",
    "thorium*": "there is no thorium",
    "proxy*": "there are no proxy minions here",
    "syndic_*": "there are no syndics here",
    "winrepo_*": "there is no Windows here",
    "metrics": "health_port serves /metrics",
    "saltpip_*": "there is no salt-pip here",
    "update_*": "the package manager of its host brings a newer minion",
    "auto_accept": _FETCHED,
    "publisher_acl*": "the master's options say who may do what",
    "fips_mode": "algorithms are encryption_algorithm and signing_algorithm",
    "unique_jid": "JIDs are unique always",
}


def advice_for(name: str) -> str:
    """Return the advice for an option of stock minions, "" where the name is not in the table."""
    return next((advice for glob, advice in _TABLE.items() if fnmatch.fnmatchcase(name, glob)), "")
