"""The options of the minion and of salt-call, and their reader. This module imports nothing of the master's options."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saltern.kit.config.fileserver_options import FileserverOptions
from saltern.kit.config.option_fields import option
from saltern.kit.config.reading import ConfigError, conf_file, config_directory, gpg_keys, read_options
from saltern.kit.config.state_options import StateOptions

#: What a minion may apply when it starts.
_SPOOL_POLICIES = ("refuse", "drop_oldest")
_STARTUPS = ("", "highstate", "sls", "top")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MinionOptions(StateOptions, FileserverOptions):
    """The options of the minion and of salt-call (file ``minion``)."""

    id: str = option("", "name of the minion; empty: the fully qualified host name")
    master: str | list[str] = option(
        "salt", "host name or address of the master, host:port at will; a list: the minion is connected to all of them"
    )
    master_type: str = option(
        "str",
        "str; of a list one at a time: failover, in order, or distributed, beginning with one by the minion's id; "
        "func: `master` names a function that returns the address; disable: there is none",
    )
    master_port: int = option(4506, "the master's request port")
    master_alive_interval: int = option(
        0, "seconds between two looks whether the master is there, with master_type failover; 0: none"
    )
    master_failback: bool = option(False, "with failover, the minion goes back to the first master once it is there")
    master_failback_interval: int = option(0, "seconds between two looks for it; 0: master_alive_interval")
    random_master: bool = option(False, "a list of masters is tried in random order, by salt-call always")
    master_shuffle: bool = option(False, "Salt's old name of random_master")
    master_tries: int = option(1, "how often salt-call tries its masters before it gives up; -1: for ever")
    retry_dns: int | float = option(
        30,
        "seconds between two looks for the address of a master that has none; 0, and with failover: it is not waited for",
    )
    retry_dns_count: int | None = option(None, "how often the address is looked for; empty: for ever")
    publish_port: int = option(0, "the master's publish port; 0: the one that the master tells")
    pki_dir: str = option("/etc/salt/pki/minion", "the minion's key pair and the master's public key")
    cachedir: str = option("/var/cache/salt/minion", "files, pillar, modules and running jobs of the minion")
    host_root: str = option("/", "root of the managed host")
    host_pid: bool = option(
        False,
        "the minion shares the host's PID namespace: commands run in the namespaces of process 1, the host's init",
    )
    file_client: str = option(
        "remote", "remote: files and pillar from the master; local: from file_roots and pillar_roots"
    )
    backup_mode: str = option(
        "", "minion: a file that a state replaces is kept below <cachedir>/file_backup, where the state says nothing"
    )
    saltenv: str | None = option(None, "environment that states are taken from")
    lock_saltenv: bool = option(False, "a call may not name another saltenv")
    pillarenv: str | None = option(None, "environment that pillar is taken from")
    pillar_raise_on_missing: bool = option(False, "pillar.get fails for a missing key without a default")
    pillar_mask_output: bool = option(True, "pillar that an operator asks for is masked unless unmask=True")
    extension_modules: str = option("", "users' modules by kind; empty: <cachedir>/extmods")
    autoload_dynamic_modules: bool = option(True, "a state run begins by fetching users' modules from the tree")
    clean_dynamic_modules: bool = option(True, "users' modules that are gone from the tree are removed")
    module_executors: list[str] | str = option(["direct_call"], "how a job's function is run: executors, in order")
    splaytime: int = option(300, "seconds over which the executor splay spreads minions")
    sudo_user: str = option("", "user that the minion runs a job's function as, by sudo and salt-call")
    test: bool = option(False, "state runs only tell what they would change")
    state_queue: bool | int = option(False, "a second state run waits; a number: if fewer than so many are before it")
    state_data: str = option("", "terse: state runs tell only what failed or changed")
    grains: dict[str, Any] = option({}, "static grains")
    grains_deep_merge: bool = option(
        False, "maps of custom and static grains are joined with those that were there before"
    )
    grains_blacklist: list[str] = option(
        [], "globs or regular expressions of grains that are left out; those of the option grains, and id, stay"
    )
    enable_gpu_grains: bool = option(True, "gpus and num_gpus are among the grains")
    enable_fqdns_grains: bool = option(True, "fqdns among the grains is looked up in the host's files")
    disable_modules: list[str] = option([], "execution modules, or files of them, that are not there for anybody")
    disable_returners: list[str] = option([], "the same for returners")
    disable_states: list[str] = option([], "the same for state modules")
    disable_grains: list[str] = option([], "the same for files of grains")
    disable_beacons: list[str] = option([], "the same for beacons")
    disable_executors: list[str] = option([], "the same for executors")
    disable_utils: list[str] = option([], "the same for utility modules")
    whitelist_modules: list[str] = option(
        [], "the only execution modules that jobs, salt-call and SLS may call; modules and states call any; empty: all"
    )
    whitelist_state_modules: list[str] = option([], "the only state modules; empty: all")
    grains_file: str = option("", "grains that were set on the minion (grains.setval); empty: <config dir>/grains")
    keysize: int = option(2048, "bits of a new key")
    encryption_algorithm: str = option("OAEP-SHA1", "OAEP-SHA1 or OAEP-SHA224")
    signing_algorithm: str = option("PKCS1v15-SHA1", "PKCS1v15-SHA1 or PKCS1v15-SHA224")
    sign_pub_messages: bool = option(True, "publications without the master's signature are dropped")
    master_finger: str = option("", "fingerprint that the master's key must have")
    open_mode: bool = option(False, "a changed master key is taken: for labs only")
    autosign_grains: list[str] = option([], "grains sent with the sign-in for autosigning")
    auth_timeout: int = option(5, "seconds that one sign-in request waits")
    auth_tries: int = option(7, "how often it is sent")
    acceptance_wait_time: int = option(10, "seconds between sign-ins while the key waits for acceptance")
    acceptance_wait_time_max: int = option(0, "that pause grows up to so many seconds; 0: it does not grow")
    rejected_retry: bool = option(False, "a rejected minion tries on instead of ending")
    recon_default: int = option(1000, "shortest pause before a reconnect, milliseconds")
    recon_max: int = option(10000, "longest pause before a reconnect, milliseconds")
    recon_randomize: bool = option(True, "the pause is drawn between recon_default and recon_default + recon_max")
    random_reauth_delay: int = option(
        0, "the minion waits up to so many seconds before it signs in again at a master whose keys have changed"
    )
    request_channel_timeout: int = option(60, "seconds that a request waits for its answer")
    request_channel_tries: int = option(3, "how often a request is sent")
    return_retry_timer: int = option(5, "shortest pause before a return is sent again, seconds")
    return_retry_timer_max: int = option(10, "longest pause before a return is sent again, seconds")
    file_buffer_size: int = option(262144, "bytes of one chunk of a file that cp.push sends")
    cache_jobs: bool = option(False, "the minion keeps what its jobs return, below <cachedir>/minion_jobs")
    minion_jid_queue_hwm: int = option(100, "how many JIDs are remembered against running one twice")
    minion_pillar_cache: bool = option(False, "pillar is kept on disk for runs without a master")
    enable_legacy_startup_events: bool = option(True, "minion_start is fired beside salt/minion/<id>/start")
    spool_max_bytes: int = option(256 * 1024 * 1024, "bytes of returns that may wait for the master")
    spool_policy: str = option(
        "refuse", "when so many wait: refuse new jobs, or drop_oldest, so that words stand for the oldest results"
    )
    replay_window: int = option(
        300,
        "seconds for which a job waits that was not begun when the minion was killed, where the master does not say",
    )
    replay_interval: int | float = option(
        120, "seconds after which a minion asks for what it missed without a reason, a sign of life too; 0: never"
    )
    replay_delay: int | float = option(
        3, "seconds over which minions that reconnect spread their question for what they missed"
    )
    max_return_bytes: int = option(
        60 * 1024 * 1024, "bytes of the largest return that is sent; an error says so in place of a larger one; 0: any"
    )
    schedule: dict[str, Any] = option({}, "jobs that the minion runs by itself: name -> function, times, ...")
    mine_functions: dict[str, Any] | list[Any] = option({}, "what the minion offers to others: function -> arguments")
    mine_interval: int = option(60, "minutes between two updates of what it offers")
    mine_enabled: bool = option(True, "what is offered is updated by itself")
    mine_return_job: bool = option(False, "these updates are in the master's job cache")
    startup_states: str = option("", "applied when the minion starts: highstate, sls (sls_list) or top (top_file)")
    sls_list: list[str] = option([], "SLS files of startup_states: sls")
    top_file: str = option("", "top file of startup_states: top")
    start_event_grains: list[str] = option([], "grains that the minion's start event carries")
    random_startup_delay: int = option(0, "the minion waits up to so many seconds before it signs in")
    ping_interval: int = option(0, "minutes between two minion_ping events; 0: none")
    grains_refresh_every: int = option(0, "minutes after which grains are gathered anew; 0: never")
    auth_safemode: bool = option(False, "taken for Salt's sake: a minion always goes on trying")
    multiprocessing: bool = option(
        True, "taken for Salt's sake: every job is a process, forked from one that is loaded"
    )
    process_count_max: int = option(-1, "how many jobs may run at once, others wait; -1: any number")
    return_: list[str] | str = option([], "returners of all jobs; Salt's name `return` says the same")
    returner_dirs: list[str] = option([], "directories of users' returners")
    beacons: dict[str, Any] = option({}, "what the minion looks at by itself: beacon -> list of its options")
    beacons_dirs: list[str] = option([], "directories of users' beacons")
    beacons_file: str = option("", "where beacons.save writes; empty: <config dir>/minion.d/beacons.conf")
    schedule_returner: list[str] | str = option("", "returners of all scheduled jobs")
    schedule_file: str = option(
        "", "where a changed schedule is kept; empty: <config dir>/minion.d/_schedule.conf, which is read at the start"
    )
    command_shell: str = option("/bin/sh", "shell of cmd.run on the managed host")


def _own_name() -> str:
    # Asked for by minions without an id alone; a command with one need not load sockets.
    import socket

    return socket.getfqdn()


def load_minion(config_dir: str | None = None, env: Mapping[str, str] | None = None) -> MinionOptions:
    """Read the options of the minion and of salt-call; fill in ``id``, file paths and ``gpg_keydir``. Raises ConfigError."""
    options = read_options(MinionOptions, "minion", config_dir, os.environ if env is None else env)
    if options.startup_states not in _STARTUPS:
        raise ConfigError(f"startup_states: {options.startup_states!r} is none of {', '.join(filter(None, _STARTUPS))}")
    if options.spool_policy not in _SPOOL_POLICIES:
        raise ConfigError(f"spool_policy: {options.spool_policy!r} is none of {', '.join(_SPOOL_POLICIES)}")
    return dataclasses.replace(
        options,
        id=options.id or _own_name(),
        grains_file=options.grains_file or str(config_directory(config_dir, env) / "grains"),
        schedule_file=options.schedule_file or str(config_directory(config_dir, env) / "minion.d" / "_schedule.conf"),
        beacons_file=options.beacons_file or str(config_directory(config_dir, env) / "minion.d" / "beacons.conf"),
        gpg_keydir=gpg_keys(options, config_dir, env),
        conf_file=conf_file(options, "minion", config_dir, env),
    )


def extension_directory(options: MinionOptions) -> Path:
    """Return the directory in which a minion keeps users' modules."""
    return Path(options.extension_modules) if options.extension_modules else Path(options.cachedir) / "extmods"
