"""The options of the minion and of salt-call, and their reader. This module imports nothing of the master's options."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saltern.kit.config.fileserver_options import FileserverOptions
from saltern.kit.config.minion_id import found_id, keep_id, kept_id, with_domain
from saltern.kit.config.option_fields import option
from saltern.kit.config.reading import (
    ConfigError,
    as_opts,
    conf_file,
    config_directory,
    gpg_keys,
    notes_of,
    read_options,
    with_notes,
)
from saltern.kit.config.state_options import StateOptions

#: Values of ``spool_policy``, and of ``startup_states``.
_SPOOL_POLICIES = ("refuse", "drop_oldest")
_STARTUPS = ("", "highstate", "sls", "top")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MinionOptions(StateOptions, FileserverOptions):
    """The options of the minion and of salt-call (file ``minion``)."""

    id: str = option(
        "", "name of the minion; empty: the file minion_id in the configuration directory, else the host's name"
    )
    id_function: dict[str, Any] | str = option(
        {}, "execution function, or {function: arguments}, that returns the id of a minion that has none"
    )
    minion_id_caching: bool = option(True, "keep an id that was found in the file minion_id")
    minion_id_lowercase: bool = option(False, "write an id that was found in lower case")
    minion_id_remove_domain: bool | str = option(
        False, "remove the domain from an id that was found: true: any domain; a text: this one"
    )
    append_domain: str = option("", "domain that is appended to an id without it")
    append_minionid_config_dirs: list[str] = option(
        [], "directories that get the id as last part: pki_dir, cachedir, extension_modules"
    )
    user: str = option("", "user that the minion runs as, if it is started by root; empty: the user who starts it")
    master: str | list[str] = option(
        "salt", "host name or address of the master, optionally host:port; a list: the minion connects to all of them"
    )
    master_type: str = option(
        "str",
        "str: `master` is the address or the list; failover: one master of the list at a time, in order; "
        "distributed: one at a time, starting at one chosen by the minion id; func: `master` names a function "
        "that returns the address; disable: no master",
    )
    master_port: int = option(4506, "the master's request port")
    master_alive_interval: int = option(
        0, "with master_type failover: seconds between two checks whether the master is connected; 0: no checks"
    )
    master_failback: bool = option(
        False, "with master_type failover: return to the first master of the list when it is available again"
    )
    master_failback_interval: int = option(
        0, "seconds between two checks of the first master for master_failback; 0: master_alive_interval"
    )
    random_master: bool = option(False, "try a list of masters in random order (salt-call always does)")
    master_shuffle: bool = option(False, "old name of random_master in Salt")
    master_tries: int = option(1, "number of rounds through its masters before salt-call gives up; -1: unlimited")
    retry_dns: int | float = option(
        30,
        "seconds between two tries to resolve the master's host name; 0, or with failover: no retries",
    )
    retry_dns_count: int | None = option(None, "number of tries to resolve the master's host name; empty: unlimited")
    source_interface_name: str = option(
        "",
        "network interface whose address the minion's connections to the master come from; empty: as the system's routes",
    )
    source_address: str = option(
        "", "address that the minion's connections to the master come from, if no interface is named"
    )
    source_ret_port: int = option(
        0, "port that the minion's main process connects to the request port from, with a source address; 0: any"
    )
    source_publish_port: int = option(
        0, "port that the minion connects to the publish port from, with a source address; 0: any"
    )
    publish_port: int = option(0, "the master's publish port; 0: the port in the master's sign-in reply")
    pki_dir: str = option("/etc/salt/pki/minion", "directory of the minion's key pair and of the master's public key")
    cachedir: str = option(
        "/var/cache/salt/minion", "directory of the minion's cached files, pillar, modules and running jobs"
    )
    host_root: str = option("/", "directory at which the root of the managed host is mounted")
    host_pid: bool = option(
        False,
        "the minion shares the host's PID namespace: commands run in the namespaces of process 1, the host's init",
    )
    host_capabilities: list[str] = option(
        [],
        "with host_root: Linux capabilities that commands of the mounted host keep, of those that they lose, such as SYS_ADMIN "
        "for states that mount there",
    )
    file_client: str = option(
        "remote", "remote: files and pillar come from the master; local: from file_roots and pillar_roots"
    )
    backup_mode: str = option(
        "",
        "`minion`: states save a replaced file in <cachedir>/file_backup, unless the state sets `backup`; "
        "empty: no backups",
    )
    saltenv: str | None = option(None, "saltenv of state runs; null: all saltenvs of the top file")
    lock_saltenv: bool = option(False, "refuse calls that name another saltenv")
    pillarenv: str | None = option(None, "environment of the pillar; null: all")
    pillar_raise_on_missing: bool = option(False, "pillar.get fails for a missing key without a default")
    pillar_mask_output: bool = option(True, "mask pillar values that an operator requests, unless unmask=True")
    extension_modules: str = option(
        "", "directory of synced users' modules, one subdirectory for each kind; empty: <cachedir>/extmods"
    )
    autoload_dynamic_modules: bool = option(
        True, "fetch users' modules from the state tree at the start of each state run"
    )
    clean_dynamic_modules: bool = option(True, "delete synced users' modules that are no longer in the state tree")
    module_executors: list[str] | str = option(["direct_call"], "executors that run a job's function, in order")
    splaytime: int = option(300, "seconds over which the executor splay spreads the jobs of all minions")
    sudo_user: str = option("", "user that runs each job's function, by sudo and salt-call; empty: the minion's user")
    test: bool = option(False, "state runs only report changes and make none")
    state_queue: bool | int = option(
        False, "queue a state run while another is running, instead of failing; a number: only if fewer runs are queued"
    )
    state_data: str = option("", "terse: state runs return only states that failed or changed something")
    grains: dict[str, Any] = option({}, "static grains")
    grains_deep_merge: bool = option(
        False, "merge maps of custom and static grains into earlier grains, instead of replacing them"
    )
    grains_blacklist: list[str] = option(
        [], "globs or regular expressions of grains to omit; `id` and static grains are kept"
    )
    enable_gpu_grains: bool = option(True, "collect the grains gpus and num_gpus")
    enable_fqdns_grains: bool = option(True, "collect the grain fqdns, from the host's files")
    disable_modules: list[str] = option([], "execution modules, or their files, that are not loaded")
    disable_returners: list[str] = option([], "returners, or their files, that are not loaded")
    disable_states: list[str] = option([], "state modules, or their files, that are not loaded")
    disable_grains: list[str] = option([], "files of grains that are not loaded")
    disable_beacons: list[str] = option([], "beacons, or their files, that are not loaded")
    disable_executors: list[str] = option([], "executors, or their files, that are not loaded")
    disable_utils: list[str] = option([], "utility modules, or their files, that are not loaded")
    whitelist_modules: list[str] = option(
        [],
        "the only execution modules that jobs, salt-call and SLS may call (modules and states may call any); "
        "empty: all",
    )
    whitelist_state_modules: list[str] = option([], "the only state modules that are loaded; empty: all")
    grains_file: str = option(
        "", "file of grains that were set on the minion (grains.setval); empty: <config dir>/grains"
    )
    keysize: int = option(
        2048, "size in bits of a newly created key; at least 2048, smaller keys are refused by the master"
    )
    encryption_algorithm: str = option("OAEP-SHA1", "RSA encryption of the sign-in: OAEP-SHA1 or OAEP-SHA224")
    signing_algorithm: str = option(
        "PKCS1v15-SHA1", "signature algorithm of the minion's requests: PKCS1v15-SHA1 or PKCS1v15-SHA224"
    )
    sign_pub_messages: bool = option(True, "drop publications without a valid signature of the master")
    master_finger: str = option("", "fingerprint that the master's public key must have; empty: any")
    open_mode: bool = option(False, "accept a changed master key; for labs only")
    autosign_grains: list[str] = option([], "grains that are sent with the sign-in request, for autosigning")
    auth_timeout: int = option(5, "seconds to wait for the reply to a sign-in request")
    auth_tries: int = option(7, "number of sign-in requests before the minion reports a timeout")
    acceptance_wait_time: int = option(10, "seconds between sign-ins while the key waits for acceptance")
    acceptance_wait_time_max: int = option(0, "seconds up to which acceptance_wait_time grows; 0: it does not grow")
    rejected_retry: bool = option(False, "keep trying to sign in when the key is rejected, instead of exiting")
    recon_default: int = option(1000, "shortest pause in milliseconds before a reconnect")
    recon_max: int = option(10000, "longest pause in milliseconds before a reconnect")
    recon_randomize: bool = option(
        True, "choose the pause at random between recon_default and recon_default + recon_max"
    )
    random_reauth_delay: int = option(
        0, "largest random delay in seconds before the minion signs in again after the master's keys changed"
    )
    request_channel_timeout: int = option(60, "seconds to wait for the reply to a request")
    request_channel_tries: int = option(3, "number of times that a request is sent")
    return_retry_timer: int = option(5, "shortest pause in seconds before a return is sent again")
    return_retry_timer_max: int = option(10, "longest pause in seconds before a return is sent again")
    file_buffer_size: int = option(262144, "size in bytes of one chunk of a file that cp.push sends")
    cache_jobs: bool = option(False, "store the returns of jobs in <cachedir>/minion_jobs")
    minion_jid_queue_hwm: int = option(100, "number of JIDs that are remembered, so that no job runs twice")
    minion_pillar_cache: bool = option(False, "store the pillar on disk, for runs without a master")
    enable_legacy_startup_events: bool = option(True, "fire minion_start besides salt/minion/<id>/start")
    spool_max_bytes: int = option(256 * 1024 * 1024, "largest total size in bytes of returns that wait for the master")
    spool_policy: str = option(
        "refuse",
        "behaviour when spool_max_bytes is reached: refuse (new jobs are refused) or drop_oldest (the oldest "
        "returns are replaced by a short text)",
    )
    replay_window: int = option(
        300,
        "seconds during which a job that was received but not started is still started after a minion crash, "
        "if the master gives no limit",
    )
    replay_interval: int | float = option(
        120, "seconds between two requests for missed jobs, which are also signs of life; 0: never"
    )
    replay_delay: int | float = option(
        3, "largest random delay in seconds of the request for missed jobs after a reconnect"
    )
    max_return_bytes: int = option(
        60 * 1024 * 1024, "largest return in bytes that is sent; a larger return is replaced by an error; 0: unlimited"
    )
    schedule: dict[str, Any] = option({}, "jobs that the minion runs on schedule: name -> map of function, times, ...")
    mine_functions: dict[str, Any] | list[Any] = option(
        {}, "mine function -> arguments: data that the minion publishes to other minions"
    )
    mine_interval: int = option(60, "minutes between two updates of the mine data")
    mine_enabled: bool = option(True, "update the mine data automatically")
    mine_return_job: bool = option(False, "record mine updates in the master's job cache")
    startup_states: str = option(
        "",
        "states applied when the minion starts: highstate, sls (files in sls_list) or top (the file "
        "top_file); empty: none",
    )
    sls_list: list[str] = option([], "SLS files for `startup_states: sls`")
    top_file: str = option("", "top file for `startup_states: top`")
    start_event_grains: list[str] = option([], "grains in the minion's start event")
    random_startup_delay: int = option(0, "largest random delay in seconds before the first sign-in")
    ping_interval: int = option(0, "minutes between two minion_ping events; 0: none")
    grains_refresh_every: int = option(0, "minutes between two collections of grains; 0: only at the start")
    auth_safemode: bool = option(False, "accepted as in Salt, without effect: a minion always keeps trying")
    multiprocessing: bool = option(
        True, "accepted as in Salt, without effect: every job is a process, forked from one that has the engine loaded"
    )
    process_count_max: int = option(-1, "largest number of jobs that run at once, others wait; -1: unlimited")
    return_: list[str] | str = option([], "returners of all jobs; Salt's name `return` is accepted, too")
    returner_dirs: list[str] = option([], "directories of users' returners")
    beacons: dict[str, Any] = option({}, "beacon -> list of its options: what the minion monitors")
    beacons_dirs: list[str] = option([], "directories of users' beacons")
    beacons_file: str = option("", "file that beacons.save writes; empty: <config dir>/minion.d/beacons.conf")
    schedule_returner: list[str] | str = option("", "returners of all scheduled jobs")
    schedule_file: str = option(
        "", "file to which a changed schedule is saved, read at the start; empty: <config dir>/minion.d/_schedule.conf"
    )
    command_shell: str = option(
        "", "shell of cmd.run on the managed host; empty: $SHELL of the process if the host has it, else /bin/sh"
    )


def load_minion(
    config_dir: str | None = None, env: Mapping[str, str] | None = None, *, keep_found_id: bool = False
) -> MinionOptions:
    """Return the options of the minion and of salt-call; ``id``, file paths and ``gpg_keydir`` are filled in.

    ``keep_found_id``: write an id that no option names to the file ``minion_id``, if ``minion_id_caching`` allows it. Raises
    ConfigError.
    """
    options = read_options(MinionOptions, "minion", config_dir, os.environ if env is None else env)
    if options.startup_states not in _STARTUPS:
        raise ConfigError(f"startup_states: {options.startup_states!r} is none of {', '.join(filter(None, _STARTUPS))}")
    if options.state_unknown_arguments not in ("warn", "error"):
        raise ConfigError(f"state_unknown_arguments: {options.state_unknown_arguments!r} is neither warn nor error")
    if options.spool_policy not in _SPOOL_POLICIES:
        raise ConfigError(f"spool_policy: {options.spool_policy!r} is none of {', '.join(_SPOOL_POLICIES)}")
    directory = config_directory(config_dir, env)
    own_id = with_domain(options.id or _found_id(options, directory, keep=keep_found_id), options.append_domain)
    named: dict[str, Any] = {
        name: str(Path(getattr(options, name)) / own_id)
        for name in options.append_minionid_config_dirs
        if name in ("pki_dir", "cachedir", "extension_modules") and getattr(options, name)
    }
    whole = dataclasses.replace(
        options,
        **{"id": own_id} | named,
        grains_file=options.grains_file or str(config_directory(config_dir, env) / "grains"),
        schedule_file=options.schedule_file or str(config_directory(config_dir, env) / "minion.d" / "_schedule.conf"),
        beacons_file=options.beacons_file or str(config_directory(config_dir, env) / "minion.d" / "beacons.conf"),
        gpg_keydir=gpg_keys(options, config_dir, env),
        conf_file=conf_file(options, "minion", config_dir, env),
    )
    return with_notes(whole, notes_of(options))


def _found_id(options: MinionOptions, directory: Path, *, keep: bool) -> str:
    """Return the id of a minion whose configuration names none: from the file ``minion_id``, else found by ``found_id``."""
    if options.minion_id_caching and (kept := kept_id(directory)):
        return kept
    found = found_id(
        options.id_function,
        as_opts(options),
        lowercase=options.minion_id_lowercase,
        remove_domain=options.minion_id_remove_domain,
    )
    if keep and options.minion_id_caching:
        keep_id(directory, found)
    return found


def extension_directory(options: MinionOptions) -> Path:
    """Return the directory in which a minion keeps the users' modules that it got from the master (``extmods``)."""
    return Path(options.extension_modules) if options.extension_modules else Path(options.cachedir) / "extmods"
