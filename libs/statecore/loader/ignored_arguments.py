"""State functions of Salt that take arguments which they do not know, and what becomes of these arguments. A table.

Salt hands a state function with ``**kwargs`` any argument. Most such functions ignore those that they do not know, so
trees contain many of them. Functions without ``**kwargs`` end Salt's whole run with an error.

The table is that of Salt 3008.3 (tests/statecore/engine/test_unknown_arguments.py compares it with the installed Salt),
and of 3006 for ``supervisord`` and ``mysql_*``, which 3008 lacks.

Source: docs/state-system.md#unknown-arguments
"""

from __future__ import annotations

from collections.abc import Mapping

#: State module -> its functions that ignore unknown arguments, separated by spaces.
_IGNORING: Mapping[str, str] = {
    "archive": "extracted",
    "at": "absent mod_watch",
    "beacon": "absent disabled enabled present",
    "blockdev": "formatted tuned",
    "cloud": "present profile volume_absent volume_attached volume_detached volume_present",
    "cmd": "call mod_watch run script wait wait_call wait_script watch",
    "cron": "absent file",
    "debconf": "set set_file",
    "etcd": "directory mod_watch rm set wait_rm wait_set",
    "event": "send",
    "file": (
        "absent accumulated copy directory exists hardlink managed missing mod_beacon mod_run_check_cmd patch "
        "recurse rename serialize shortcut symlink tidied"
    ),
    "firewall": "check",
    "gpg": "absent present",
    "highstate_doc": "note",
    "http": "query wait_for_successful_query",
    "ipset": "absent flush present set_absent set_present",
    "iptables": "append delete flush insert set_policy",
    "lvm": "lv_present pv_present vg_present",
    "module": "run wait",
    "mysql_database": "absent present",
    "mysql_grants": "absent present",
    "mysql_query": "run run_file",
    "mysql_user": "absent present",
    "mount": "mod_watch mounted unmounted",
    "netacl": "term",
    "netconfig": "managed saved",
    "network": "managed routes system",
    "nftables": "append delete flush insert set_policy table_absent table_present",
    "pip": "installed",
    "pkg": (
        "downloaded group_installed held installed latest mod_beacon mod_watch patch_downloaded "
        "patch_installed purged removed unheld uptodate"
    ),
    "pkgrepo": "absent managed",
    "raid": "present",
    "salt": "function parallel_runners runner state wheel",
    "saltutil": (
        "sync_all sync_beacons sync_clouds sync_engines sync_executors sync_grains sync_log_handlers "
        "sync_matchers sync_modules sync_output sync_outputters sync_pillar sync_proxymodules sync_renderers "
        "sync_resources sync_returners sync_sdb sync_serializers sync_states sync_thorium sync_tops "
        "sync_utils sync_wrapper"
    ),
    "schedule": "absent disabled enabled present",
    "selinux": "module",
    "service": "dead disabled enabled mod_beacon mod_watch running",
    "ssh_auth": "manage present",
    "ssh_pki": (
        "certificate_managed certificate_managed_ssh private_key_managed private_key_managed_ssh public_key_managed"
    ),
    "stateconf": "set",
    "supervisord": "dead mod_watch running",
    "syslog_ng": "started",
    "test": (
        "fail_with_changes fail_without_changes mod_watch nop show_notification succeed_with_changes "
        "succeed_without_changes"
    ),
    "uptime": "monitored",
    "virtualenv": "manage managed",
    "x509": (
        "certificate_managed certificate_managed_ssh crl_managed csr_managed pem_managed private_key_managed "
        "private_key_managed_ssh"
    ),
}

#: State functions that take unknown arguments, and then fail because of them.
_REFUSING = frozenset({"git.config_set", "git.config_unset", "git.detached", "git.latest"})

#: State function of Salt -> argument that it reads under another name.
_READ_AS: Mapping[str, Mapping[str, str]] = {
    f"file.{function}": {"owner": "user"}
    for function in ("copy", "directory", "hardlink", "managed", "recurse", "shortcut", "symlink")
}


def ignores_unknown(function: str) -> bool:
    """Return True if Salt's state function, such as "file.managed", ignores arguments that it does not know."""
    module, _, name = function.partition(".")
    return name in _IGNORING.get(module, "").split()


def refuses_unknown(function: str) -> bool:
    """Return True if Salt's state function (such as "git.latest") accepts unknown arguments and then fails because of
    them, with the error message that Salt has for execution functions.
    """
    return function in _REFUSING


def read_as(function: str) -> Mapping[str, str]:
    """Map of each undocumented argument that Salt's state function reads ("owner") to the argument whose value it sets
    ("user"); {} for most functions.
    """
    return _READ_AS.get(function, {})
