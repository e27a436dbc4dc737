"""Table of the execution functions with ``**kwargs`` that use only a few named keywords of it, or none, as many of
Salt's do.

Such a function ignores a misspelt keyword, so the call would do something else than was meant. Jobs with a keyword
that is one letter from a keyword of the function are refused. Functions that are not in the table take any keyword as
data (``test.kwarg``), check their keywords themselves (``state.*``, ``git.*``), or pass them on.

tests/statecore/loader/test_further_keywords.py compares the table with the functions.
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.loader.arguments import Parameters
from statecore.model.nearest import one_letter_off

#: Keywords of ``cmd.run``, which the other functions of the module take, too.
_COMMAND = (
    "cwd stdin runas group shell python_shell env clean_env template rstrip umask output_encoding output_loglevel "
    "log_callback hide_output timeout reset_system_locale ignore_retcode saltenv bg password encoded_cmd raise_err "
    "prepend_path success_retcodes success_stdout success_stderr use_vt redirect_stderr"
)

#: Keywords of a login at MySQL.
_MYSQL = (
    "connection_user connection_pass connection_host connection_port connection_db connection_unix_socket "
    "connection_default_file connection_default_group connection_charset connection_use_unicode connection_conv "
    "connection_ssl connection_timeout connection_args"
)

_SERVICE = dict.fromkeys(("disable", "disabled", "enable", "enabled"), "")
_APPLY_NETWORK = "apply_hostname hostname require_reboot"

#: File name of a built-in module -> function -> the keywords that it reads from ``**kwargs``, separated by spaces.
FURTHER: Mapping[str, Mapping[str, str]] = {
    "acl": {"getfacl": "recursive"},
    "asymmetric": {"verify": ""},
    "at": {"at": "runas tag"},
    "beacons": {
        **dict.fromkeys(("list", "list_available", "save"), ""),
        **dict.fromkeys(
            ("add", "delete", "disable", "disable_beacon", "enable", "enable_beacon", "modify", "reset"), "test"
        ),
    },
    "cmd": dict.fromkeys(
        (
            *("run", "run_all", "run_stdout", "run_stderr", "retcode", "shell", "run_bg", "run_chroot"),
            *("script", "script_retcode", "exec_code", "exec_code_all"),
        ),
        _COMMAND,
    ),
    "cp": {"get_dir": "", "get_file": ""},
    "debconf": {"set_file": ""},
    "file": {"chattr": "", "get_managed": "", "remove": ""},
    "grains": {"item": ""},
    "ip_ifcfg": {"apply_network_settings": _APPLY_NETWORK},
    "ip_ifupdown": {"apply_network_settings": _APPLY_NETWORK},
    "ip_netplan": {"apply_network_settings": "", "build_network_settings": ""},
    "localemod": {"gen_locale": "verbose"},
    "lowpkg": dict.fromkeys(("file_dict", "file_list", "list_pkgs"), ""),
    "mount": {"set_fstab": ""},
    "mysql": dict.fromkeys(
        (
            *("user_grants", "grant_exists", "grant_add", "grant_revoke", "query", "file_query", "version"),
            *("plugin_status", "verify_login", "db_list", "db_get", "db_exists", "db_create", "alter_db", "db_remove"),
            *("user_list", "user_exists", "user_create", "user_chpass", "user_remove"),
        ),
        _MYSQL,
    ),
    "nacl": {
        **dict.fromkeys(("dec", "dec_file", "enc", "enc_file"), "box_type key keyfile pk pk_file sk sk_file"),
        **dict.fromkeys(("sealedbox_decrypt", "secretbox_decrypt", "secretbox_encrypt"), "sk sk_file"),
        "keygen": "keyfile",
        "sealedbox_encrypt": "pk pk_file",
    },
    "network": {"connect": "family proto timeout"},
    "pkg_apk": dict.fromkeys(
        (
            *("available_version", "del_repo", "file_dict", "file_list", "get_repo", "install", "latest_version"),
            *("list_pkgs", "list_repo_pkgs", "list_repos", "list_upgrades", "owner", "purge", "refresh_db", "remove"),
            *("upgrade", "upgrade_available", "version", "version_cmp"),
        ),
        "",
    ),
    "pkg_apt": {
        **dict.fromkeys(
            (
                *("add_repo_key", "autoremove", "del_repo_key", "file_dict", "file_list", "hold", "install"),
                *("latest_version", "list_downloaded", "list_pkgs", "list_repo_pkgs", "list_repos", "owner", "purge"),
                *("refresh_db", "remove", "unhold", "upgrade_available", "version", "version_cmp"),
            ),
            "",
        ),
        "list_upgrades": "cache_valid_time fromrepo",
        "upgrade": ("allow_downgrades cache_valid_time download_only downloadonly force_conf_new pkgs skip_verify"),
    },
    "pkg_resource": {"parse_targets": "advisory_ids version"},
    "pkg_rpm": dict.fromkeys(
        (
            *("autoremove", "del_repo", "diff", "download", "file_dict", "file_list", "get_repo", "hold"),
            *("info_installed", "list_downloaded", "list_patches", "list_pkgs", "list_repos", "modified", "owner"),
            *("purge", "remove", "services_need_restart", "unhold", "verify", "version", "version_cmp"),
        ),
        "",
    ),
    "pkg_zypper": {
        **dict.fromkeys(
            (
                *("del_repo", "get_repo", "hold", "list_downloaded", "list_holds", "list_installed_patches"),
                *("list_provides", "list_repos", "purge", "remove", "services_need_restart", "unhold", "version_cmp"),
            ),
            "",
        ),
        **dict.fromkeys(("download", "info_available"), "force gpgautoimport refresh root"),
        "install": "advisory_ids diff_attr force gpgautoimport resolve_capabilities",
        "list_pkgs": "attr purge_desired removed",
        "list_repo_pkgs": "byrepo fromrepo root",
        "list_upgrades": "force fromrepo gpgautoimport",
        "refresh_db": "repos",
        "resolve_capabilities": "force gpgautoimport resolve_capabilities",
        "upgrade": "force gpgautoimport",
        "version": "root versions_as_list",
    },
    "restartcheck": {"restartcheck": "verbose"},
    "saltcheck": {"run_test": ""},
    "saltutil": {"refresh_beacons": "", "refresh_modules": ""},
    "schedule": {
        "show_next_fire_time": "",
        **dict.fromkeys(("copy", "disable", "disable_job", "enable", "enable_job", "move", "save"), "test"),
    },
    "service_openrc": _SERVICE,
    "service_supervisord": _SERVICE,
    "service_systemd": _SERVICE,
    "service_systemd_offline": {**_SERVICE, **dict.fromkeys(("reload", "restart", "start", "stop"), "")},
    "service_sysv": _SERVICE,
    "ssh": {"set_auth_key_from_file": "options"},
    "state": {"event": "", "orchestrate": "", "pkg": ""},
    "sys": dict.fromkeys(
        ("list_functions", "list_returner_functions", "list_runner_functions", "list_state_functions"), ""
    ),
    "test": {"tty": ""},
}

#: Shorter names are one letter from too many others.
_SHORTEST = 3


def near_miss(file: str, function: str, parameters: Parameters, kwargs: Mapping[str, object]) -> tuple[str, str] | None:
    """Return (misspelt keyword of the call, keyword of the function that was probably meant); None if no keyword of
    the call is one letter from one of the function.

    ``file`` is the module's file name without suffix, such as "pkg_apt". Keywords of the publication (``__pub_*``) are
    not checked, and neither are calls of functions that are not in the table.
    """
    if parameters.named.keys() >= kwargs.keys() or (row := FURTHER.get(file, {}).get(function)) is None:
        return None
    known = sorted({*parameters.named, *row.split()})
    for name in kwargs:
        if name.startswith("__") or name in known or len(name) < _SHORTEST:
            continue
        near = next((one for one in known if one_letter_off(name, one)), None)
        if near is not None:
            return name, near
    return None
