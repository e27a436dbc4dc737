"""Options of the master's roles and of the minion: typed, frozen, parsed once.

The field is the documentation: ``metadata["doc"]`` feeds docs/config.md and error messages. Names are Salt's where
Salt has the option. A value comes from, later wins: the default, ``<config dir>/master`` (or ``minion``), ``<file>.d/*.conf`` in
name order, the environment (``SALTERN_<OPTION>``, a YAML value; ``SALTERN_<OPTION>_FILE``, a file that holds one: how secrets
come in). The configuration directory is ``--config-dir``, else
``SALT_CONFIG_DIR``, else ``/etc/salt``. An unknown option is an error that names the nearest one.
"""

from __future__ import annotations

import dataclasses
import os
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml

from services.kit.fileserver_options import FileserverOptions
from services.kit.option_fields import Values, option
from services.kit.worker_options import WorkerOptions
from statecore.deferred import loaded
from statecore.nearest import close_matches

#: C speed where libyaml is there; the pure loader reads the same language.
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

DEFAULT_CONFIG_DIR = "/etc/salt"
ENV_PREFIX = "SALTERN_"

#: Ends a variable that names a file with the value. Options whose own name ends so (``output_file``) come first.
_FILE = "_file"

#: Options that several files of ``<file>.d`` may each say a part of. What the main file says of them counts only without those, as
#: in Salt: one of them is what was saved of the whole.
_JOINED = ("beacons", "schedule")

#: What a minion may apply when it starts.
_SPOOL_POLICIES = ("refuse", "drop_oldest")
_STARTUPS = ("", "highstate", "sls", "top")

#: Starts Salt's names for what is ``out_table`` here.
_TABLE = "out.table."


#: What is known of options of stock minions; looked at where one is named.
_STOCK = "services.kit.stock_minion_options"


class ConfigError(Exception):
    """A configuration that cannot be used. str() says file and line (or variable), option, why, and the nearest valid name."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class StateOptions(Values):
    """What the state system reads, on master (pillar, reactor) and minion alike."""

    file_roots: dict[str, list[str]] = option({"base": ["/srv/salt"]}, "environment -> directories of the state tree")
    pillar_roots: dict[str, list[str]] = option({"base": ["/srv/pillar"]}, "environment -> directories of the pillar")
    file_ignore_glob: list[str] | str = option([], "globs of paths that file_roots do not serve")
    file_ignore_regex: list[str] | str = option([], "regular expressions of paths that file_roots do not serve")
    fileserver_followsymlinks: bool = option(
        True, "links in file_roots are followed, wherever they lead; else only to what lies in the same root"
    )
    fileserver_ignoresymlinks: bool = option(False, "links in file_roots are not listed")
    fileserver_list_cache_time: int = option(
        0, "seconds for which lists of file_roots are not compared with the directories; 0: always compared"
    )
    hash_type: str = option("sha256", "digest of served files and of fingerprints")
    renderer: str = option("jinja|yaml", "pipe of renderers for files without a shebang")
    renderer_blacklist: list[str] = option([], "renderers that are left out of every pipe")
    renderer_whitelist: list[str] = option([], "the only renderers that are not left out; empty: all")
    gpg_keydir: str = option("", "keys of the renderer gpg; empty: <config dir>/gpgkeys")
    gpg_decrypt_must_succeed: bool = option(True, "a message that cannot be decrypted is an error, else it stays")
    state_top: str = option("top.sls", "name of the top file")
    state_top_saltenv: str | None = option(None, "the only environment whose top file counts")
    default_top: str = option("base", "environment whose top file stands in where one is missing")
    env_order: list[str] = option([], "order in which environments' top files are merged")
    top_file_merging_strategy: str = option("merge", "merge, merge_all or same")
    pillar_source_merging_strategy: str = option("smart", "smart, recurse, aggregate, overwrite or none")
    pillar_merge_lists: bool = option(False, "lists of pillar files are joined, not replaced")
    pillar_includes_override_sls: bool = option(False, "what a pillar file includes counts more than the file")
    pillar_safe_render_error: bool = option(True, "a minion is told where its pillar is wrong; why, the log alone")
    pillarenv_from_saltenv: bool = option(False, "pillar is taken from the environment that states are taken from")
    ext_pillar: list[dict[str, Any]] = option([], "external pillars in their order, each `name: arguments`")
    ext_pillar_first: bool = option(False, "external pillars come before the pillar files, which see them")
    ext_pillar_timeout: int = option(30, "seconds for one external pillar, and for one command of master_tops")
    on_demand_ext_pillar: list[str] = option(["libvirt", "virtkey"], "external pillars that pillar.ext may ask for")
    decrypt_pillar: list[Any] | dict[str, Any] = option([], "paths, or `path: renderer`, that are decrypted at last")
    decrypt_pillar_default: str = option("gpg", "renderer of paths that name none")
    decrypt_pillar_delimiter: str = option(":", "parts the keys of these paths")
    decrypt_pillar_renderers: list[str] = option(["gpg"], "renderers that decrypt_pillar may name")
    master_tops: dict[str, Any] = option({}, "tops module -> its options; ext_nodes: the command of a node classifier")
    master_tops_first: bool = option(False, "states of master_tops come before those of the top file")
    tracing: dict[str, Any] = option(
        {}, "traces by OpenTelemetry: enabled, exporter, endpoint, ... (docs/operations/tracing.md)"
    )
    module_settings: dict[str, Any] = option(
        {}, "settings of modules and returners by their dotted names; `redis.host: x` in a file says the same"
    )
    module_dirs: list[str] = option([], "directories of users' execution modules")
    pillar_dirs: list[str] = option([], "directories of users' external pillars")
    render_dirs: list[str] = option([], "directories of users' renderers")
    top_dirs: list[str] = option([], "directories of users' tops modules")
    providers: dict[str, str] = option(
        {}, "module -> the file that serves it (service: service_sysv); else the host decides"
    )
    venv_bin: str = option(
        "", "virtualenv program of virtualenv.create; venv: Python's own module; empty: what there is"
    )
    states_dirs: list[str] = option([], "directories of users' state modules")
    grains_dirs: list[str] = option([], "directories of users' grain modules")
    utils_dirs: list[str] = option([], "directories of users' utility modules (`__utils__`, and importable by name)")
    matchers_dirs: list[str] = option([], "directories of users' matchers")
    runner_dirs: list[str] = option([], "directories of users' runners, on the master")
    executor_dirs: list[str] = option([], "directories of users' executors")
    serializers_dirs: list[str] = option([], "directories of users' serializers")
    extmod_whitelist: dict[str, Any] = option(
        {}, "kind -> names of users' modules that alone are fetched from the tree"
    )
    extmod_blacklist: dict[str, Any] = option({}, "kind -> names of users' modules that are not fetched from the tree")
    disabled_requisites: list[str] = option([], "requisites (require, watch_in, ...) that count for nothing")
    failhard: bool = option(False, "a failed state ends the run")
    state_auto_order: bool = option(True, "states run in the order of their definition")
    state_aggregate: bool | list[str] = option(
        False, "states that can (pkg) are joined into one call; or a list of these"
    )
    state_max_parallel: int = option(0, "how many states with parallel: true run at once; 0: any number")
    global_state_conditions: dict[str, Any] = option({}, "state, state module or * -> compound targets that may run it")
    state_events: bool = option(False, "an event is fired after each state of a run")
    jinja_env: dict[str, Any] = option({}, "options of the Jinja environment for files")
    jinja_sls_env: dict[str, Any] = option({}, "options of the Jinja environment for SLS")
    jinja_trim_blocks: bool = option(False, "Jinja drops the newline after a block")
    jinja_lstrip_blocks: bool = option(False, "Jinja drops white space before a block")
    jinja_time_limit: int = option(
        20, "seconds that a file may compute while it is rendered, by any renderer; commands that it runs do not count"
    )
    allow_undefined: bool = option(False, "what is not defined is empty in templates, not an error")
    verify_ssl: bool = option(True, "http.query looks at the certificates of servers")
    ca_bundle: str | None = option(None, "file of the authorities that http.query believes; null: the system's")
    http_connect_timeout: float = option(20.0, "seconds in which a server has to take a connection of http.query")
    http_request_timeout: float = option(3600.0, "seconds for one request of http.query")
    http_max_body: int = option(107374182400, "bytes of an answer beyond which http.query does not take it")
    proxy_host: str = option("", "proxy of http.query; empty: as the environment says (https_proxy, no_proxy)")
    proxy_port: int = option(0, "port of proxy_host")
    proxy_username: str = option("", "name at the proxy")
    proxy_password: str = option("", "password at the proxy")
    no_proxy: list[str] = option([], "hosts that http.query asks without the proxy")
    nodegroups: dict[str, Any] = option({}, "name -> compound target")
    range_server: str = option("", "host:port of the range server that `-R` and `R@` ask; empty: there is none")
    output: str = option("", "outputter where --out names none; empty: the one that the return names, else nested")
    output_file: str = option("", "file that output is appended to where --out-file names none")
    output_indent: int | str | None = option(
        "", "spaces of json, yaml and pprint; negative or null: one line; pretty: four, names sorted"
    )
    color: bool | str | None = option(None, "true, false, or one colour for everything; null: on a terminal")
    color_theme: str = option("", "YAML file of colour names and their codes (RED: '0;35')")
    strip_colors: bool = option(True, "control characters in returns do not reach the terminal")
    outputter_dirs: list[str] = option([], "directories of users' outputters")
    out_table: dict[str, Any] = option({}, "options of the table outputter; Salt's out.table.NAME says the same")
    state_output: str = option("full", "full, terse, mixed, changes, filter; with _id appended, IDs instead of names")
    state_output_exclude: list[Any] | str | bool = option([], "results (True, False, None) that filter leaves out")
    state_output_terse: list[Any] | str | bool = option([], "results (True, False, None) that filter shows in one line")
    state_output_profile: bool = option(True, "when a state started and how long it took is shown")
    state_output_pct: bool = option(False, "the summary shows percentages")
    state_verbose: bool = option(True, "states without changes are shown too")
    state_output_diff: bool = option(False, "only states with changes are shown")
    state_tabular: bool | str = option(False, "terse lines are aligned, or have this format")
    state_compress_ids: bool = option(False, "the names of one ID that ended alike are shown as one state")
    log_level: str = option("warning", "quiet, critical, error, warning, info, debug")
    log_format: str = option("text", "text or json (one object a line, with role, jid and minion)")
    health_host: str = option("127.0.0.1", "address of /healthz, /readyz and /metrics")
    health_port: int = option(0, "port of /healthz, /readyz and /metrics; 0 serves none")
    config_error_pause: int = option(
        0, "seconds that a role which cannot start goes on to answer /readyz with the reason, before it ends"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MasterOptions(StateOptions, FileserverOptions, WorkerOptions):
    """Options of every master role and of the commands that speak to them (file ``master``)."""

    id: str = option("master", "name of the master in events and of its runner jobs")
    user: str = option("", "user name that jobs are recorded under; empty: the caller's own")
    pillarenv: str | None = option(None, "environment that pillar is taken from where a minion names none")
    extension_modules: str = option(
        "/var/cache/salt/master/extmods", "users' modules: pillar/, tops/, modules/ and the other kinds below it"
    )
    interface: str = option("0.0.0.0", "address that 4505 and 4506 are bound to")
    internal_interface: str = option("0.0.0.0", "address that the encrypted internal links and 4507 are bound to")
    publish_port: int = option(4505, "publications to minions")
    ret_port: int = option(4506, "requests of minions")
    control_port: int = option(4507, "commands of operators: publish, runner, wheel, jobs, keys")
    event_pull_port: int = option(4512, "events into the event publisher")
    event_pub_port: int = option(4513, "events out of the event publisher")
    workers_port: int = option(4516, "requests handed to workers")
    reqserver_host: str = option("127.0.0.1", "where workers and commands reach the reqserver")
    eventpublisher_host: str = option("127.0.0.1", "where roles and commands reach the event publisher")
    redis_url: str = option(
        "redis://127.0.0.1:6379/0",
        "redis://, rediss:// (TLS), unix:// or redis+sentinel://HOST,HOST/SERVICE/DB of the master's memory",
    )
    redis_wait_replicas: int = option(
        0, "replicas that must have a job or a return before it is acknowledged; 0: the master's own Redis is enough"
    )
    redis_wait_aof: bool = option(
        False, "a job or return is acknowledged once it is on Redis' disk (WAITAOF, Redis 7.2); needs appendonly yes"
    )
    redis_wait_ms: int = option(
        1500, "milliseconds that this may take (at most 1500); after that it is not acknowledged, and asked for again"
    )
    key_dir: str = option(
        "", "directory of this role's keys, made by `saltern keygen`; empty: <config dir>/keys/<role>"
    )
    published_port: int = option(0, "publish_port told to minions where a port mapping changes it; 0: publish_port")
    timeout: int = option(5, "seconds that `salt` waits before it asks what became of a job")
    show_timeout: bool = option(True, "`salt` shows minions that do not return")
    show_jid: bool = option(False, "`salt` shows the id of the job")
    cli_summary: bool = option(False, "`salt` shows how many minions returned")
    gather_job_timeout: int = option(10, "seconds that minions have to answer that question")
    keep_jobs_seconds: int = option(86400, "seconds that a job stays in the job cache")
    job_cache: bool = option(
        True, "jobs stay in the job cache when they have ended; False: for a few minutes, for `salt` and delivery"
    )
    job_cache_bytes: int = option(
        0,
        "bytes of loads and returns in the job cache; above, the oldest jobs that have ended are dropped; 0: any number",
    )
    compress_return_bytes: int = option(
        262144, "bytes of a return above which it is kept compressed, beside Salt's key; 0: never"
    )
    file_buffer_size: int = option(1048576, "bytes of one chunk of a served file")
    auto_accept: bool = option(False, "every new minion key is accepted: for labs only")
    open_mode: bool = option(False, "minion keys are not checked at all: for labs only")
    autosign_file: str = option("", "file of minion ids (globs, regular expressions) that are accepted at once")
    autosign_dir: str = option("", "directory whose files name minions that are accepted once, by their file names")
    autosign_timeout: int = option(120, "minutes after which a file of autosign_dir counts no more; 0: never")
    autosign_grains_dir: str = option(
        "", "directory of files named as grains: a minion whose grain is one of the file's lines is accepted at once"
    )
    autoreject_file: str = option("", "file of minion ids that are rejected at once")
    max_minions: int = option(0, "how many minions may be connected; 0: any number")
    max_pending_keys: int = option(10000, "how many keys may wait for acceptance; more are turned away")
    minimum_auth_version: int = option(3, "oldest message version that is answered (2: minions before 3006.12)")
    request_server_ttl: int = option(0, "seconds after which a request is too old; 0: never")
    publish_session: int = option(86400, "seconds after which session keys change")
    aes_rotation_interval: int = option(86400, "seconds after which the key of publications changes")
    rotate_aes_key: bool = option(True, "deleting or rejecting a key changes the key of publications")
    sign_pub_messages: bool = option(True, "publications are signed with the master's key")
    publish_signing_algorithm: str = option("PKCS1v15-SHA1", "PKCS1v15-SHA1 or PKCS1v15-SHA224")
    master_sign_pubkey: bool = option(
        False, "the master's public key is signed with <master_sign_key_name>.pem, for minions that verify it"
    )
    master_sign_key_name: str = option("master_sign", "name of that key's files, in this role's keys")
    master_use_pubkey_signature: bool = option(False, "the signature is read from the file master_pubkey_signature")
    master_pubkey_signature: str = option("master_pubkey_signature", "file of that signature, in this role's keys")
    zmq_filtering: bool = option(False, "publications carry a topic, so that minions receive their own only")
    allow_minion_key_revoke: bool = option(True, "a minion may delete its own key")
    peer: dict[str, list[Any]] = option(
        {}, "regular expression of minion ids -> functions that they may publish to other minions; empty: none"
    )
    peer_run: dict[str, list[str]] = option(
        {}, "regular expression of minion ids -> runners that they may run on the master; empty: none"
    )
    file_recv: bool = option(False, "minions may send files (cp.push), to <cachedir>/minions/<id>/files")
    file_recv_max_size: int = option(100, "megabytes of the largest file that a minion may send")
    mine_get: dict[str, list[str]] | None = option(
        None, "regular expression of minion ids -> of mine functions that they may have; empty: all"
    )
    minion_data_cache: bool = option(True, "grains of minions are kept for targeting")
    replay_window: int = option(
        300, "seconds for which a job is given to minions that missed it, and sent by a publisher that was away"
    )
    max_request_bytes: int = option(64 * 1024 * 1024, "largest message that 4506 reads")
    max_event_size: int = option(1048576, "largest event in bytes; larger ones lose their largest values")
    loop_interval: int = option(60, "seconds between the rounds of maintenance")
    presence_events: bool = option(False, "salt/presence events are fired each loop_interval")
    presence_window: int = option(180, "seconds since its last request for which a minion counts as present")
    schedule: dict[str, Any] = option({}, "runners that the master starts by itself: name -> function, times, ...")
    reactor: list[dict[str, Any]] | str = option(
        [], "list of `tag glob: reactor SLS files`, or a YAML file that holds one"
    )
    event_return: list[str] | str = option([], "returners that get the events of the bus")
    event_return_queue: int = option(0, "events that are kept back and handed over together")
    event_return_queue_max_seconds: int = option(0, "seconds after which they are, few as they may be; 0: no limit")
    event_return_whitelist: list[str] = option([], "tag globs of events for event_return; empty: all")
    event_return_blacklist: list[str] = option([], "tag globs of events that event_return does not get")
    ext_job_cache: str = option("", "returner that minions send every return to, besides the master")
    master_job_cache: str = option(
        "local_cache",
        "a returner on the master that has jobs and returns, too; local_cache, redis: Redis alone has them",
    )
    returner_dirs: list[str] = option([], "directories of users' returners, on the master")
    reactor_tries: int = option(
        3, "how often an event is tried whose reactions fail; then it is kept for `salt-run reactor.dead`"
    )
    events_kept: list[str] = option(
        [], "tag globs of events that Redis keeps for who reads them later, beside those that the reactor wants"
    )
    events_kept_count: int = option(10000, "about how many of these events are kept")
    reactor_worker_threads: int = option(10, "reactions that are asked for at once")
    reactor_worker_hwm: int = option(10000, "events that one reactor takes in hand; more wait in Redis")
    reactor_niceness: int = option(0, "by how much the reactor gives way to other processes of its machine")
    control_acl: dict[str, list[str]] = option(
        {"*": [".*", "@runner", "@wheel", "@jobs"]},
        "client key name -> what it may do: function patterns, @runner, @wheel",
    )
    publisher_acl: dict[str, list[Any]] = option(
        {}, "name of an operator's key -> functions, `target: functions`, @runner, @wheel, as Salt has them for users"
    )
    publisher_acl_blacklist: dict[str, list[str]] = option(
        {}, "users and modules (functions) that nothing is published for: names, globs, regular expressions"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MinionOptions(StateOptions, FileserverOptions):
    """Options of the minion and of salt-call (file ``minion``)."""

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


#: What `salt`, `salt-key` and `salt-run` read is the master's file.
ClientOptions = MasterOptions

Options = TypeVar("Options", bound=StateOptions)


def load_master(config_dir: str | None = None, env: Mapping[str, str] | None = None) -> MasterOptions:
    """Options for a master role or a command, with ``gpg_keydir`` filled in. Raises ConfigError."""
    options = _load(MasterOptions, "master", config_dir, os.environ if env is None else env)
    return dataclasses.replace(options, gpg_keydir=_gpg_keys(options, config_dir, env))


def check_master_option(name: str, value: Any) -> None:
    """Whether a master's file may say this. Raises ConfigError: there is no such option, or it is of another type."""
    for known, meant in _with_settings(_with_table({name: value})).items():
        names = {item.name for item in dataclasses.fields(MasterOptions)}
        _checked(known, meant, typing.get_type_hints(MasterOptions), names, partial(str, name))


def load_client(config_dir: str | None = None) -> ClientOptions:
    """Options for the operator's commands; the same file as the master's. Raises ConfigError."""
    return load_master(config_dir)


def _own_name() -> str:
    # Asked for by minions without an id alone; a command with one need not load sockets.
    import socket

    return socket.getfqdn()


def load_minion(config_dir: str | None = None, env: Mapping[str, str] | None = None) -> MinionOptions:
    """Options for the minion and salt-call, with ``id``, the paths of files and ``gpg_keydir`` filled in. Raises ConfigError."""
    options = _load(MinionOptions, "minion", config_dir, os.environ if env is None else env)
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
        gpg_keydir=_gpg_keys(options, config_dir, env),
    )


def _gpg_keys(options: StateOptions, config_dir: str | None, env: Mapping[str, str] | None) -> str:
    return options.gpg_keydir or str(config_directory(config_dir, env) / "gpgkeys")


def config_directory(config_dir: str | None, env: Mapping[str, str] | None = None) -> Path:
    """The directory that options are read from."""
    return Path(config_dir or (os.environ if env is None else env).get("SALT_CONFIG_DIR") or DEFAULT_CONFIG_DIR)


def key_directory(options: MasterOptions, role: str, config_dir: str | None = None) -> Path:
    """Where the keys of a role are (see ``saltern keygen``)."""
    return Path(options.key_dir) if options.key_dir else config_directory(config_dir) / "keys" / role


def extension_directory(options: MinionOptions) -> Path:
    """Where a minion keeps users' modules."""
    return Path(options.extension_modules) if options.extension_modules else Path(options.cachedir) / "extmods"


def as_opts(options: StateOptions, **more: Any) -> dict[str, Any]:
    """Options by name, as statecore and templates see them."""
    fields = {item.name: getattr(options, item.name) for item in dataclasses.fields(options)}
    return {**options.module_settings, **fields, **more}


def shown(options: StateOptions) -> dict[str, Any]:
    """Options by name for people and job caches to see: without who signs in at the store, and how."""
    opts = as_opts(options)
    if "redis_url" not in opts:
        return opts
    return {**opts, "redis_url": re.sub(r"//[^/?]*@", "//", opts["redis_url"]).partition("?")[0]}


def _load(kind: type[Options], file_name: str, config_dir: str | None, env: Mapping[str, str]) -> Options:
    hints = typing.get_type_hints(kind)
    names = {item.name for item in dataclasses.fields(kind)}
    values: dict[str, Any] = {}
    directory = config_directory(config_dir, env)
    joined: dict[str, Any] = {}
    for path in _config_files(directory, file_name):
        for name, value in _read_file(path).items():
            checked = _checked(name, value, hints, names, partial(_place, path, name))
            if name in _JOINED and path.parent != directory:
                checked = {**joined.get(name, {}), **checked}
                joined[name] = checked
            # Each file may say some of them.
            values[name] = {**values.get(name, {}), **checked} if name == "module_settings" else checked
    for variable, text in env.items():
        name = variable.removeprefix(ENV_PREFIX).lower()
        if variable.startswith(ENV_PREFIX) and name not in names and name.removesuffix(_FILE) in names:
            name, text = name.removesuffix(_FILE), _text_of(variable, text)
        # Variables for the other kind of process (a lab sources one file for all) are none of ours.
        if variable.startswith(ENV_PREFIX) and name in names:
            values[name] = _checked(name, _from_env(variable, text, hints[name]), hints, names, partial(str, variable))
    return kind(**values)


def _text_of(variable: str, path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError as error:
        raise ConfigError(
            f"{variable}: {path}: {error.strerror}; mount the secret there, or unset {variable}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{variable}: {path}: not UTF-8") from error


def _config_files(directory: Path, file_name: str) -> Iterator[Path]:
    main, more = directory / file_name, directory / f"{file_name}.d"
    try:
        found = [main] if main.is_file() else []
        found += sorted(path for path in more.iterdir() if path.suffix == ".conf")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ConfigError(f"{error.filename}: cannot be read: {error.strerror}") from error
    yield from found


def _read_file(path: Path) -> dict[str, Any]:
    try:
        data = yaml.load(path.read_bytes(), Loader=_LOADER)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        # A ValueError is a date that is none.
        raise ConfigError(f"{path}: not valid YAML: {_one_line(error)}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: must hold `option: value` lines, not a {type(data).__name__}")
    return _with_settings(_with_table(data))


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return " ".join(str(error).split())
    problem = getattr(error, "problem", None) or getattr(error, "context", None)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _with_table(values: dict[str, Any]) -> dict[str, Any]:
    """Salt's spelling of the options of one outputter, ``out.table.NAME``, as the one option that they are here."""
    dotted = {name: value for name, value in values.items() if str(name).startswith(_TABLE)}
    if not dotted:
        return values
    rest = {name: value for name, value in values.items() if name not in dotted}
    table = rest.get("out_table")
    named = {name.removeprefix(_TABLE): value for name, value in dotted.items()}
    return rest | {"out_table": {**(table if isinstance(table, dict) else {}), **named}}


def _with_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Names with a dot are settings of modules, which only the modules know; ``return`` is no name for a field in Python."""
    dotted = {name: value for name, value in values.items() if "." in str(name).strip(".")}
    rest = {("return_" if name == "return" else name): value for name, value in values.items() if name not in dotted}
    if not dotted:
        return rest
    settings = rest.get("module_settings")
    return rest | {"module_settings": {**(settings if isinstance(settings, dict) else {}), **dotted}}


def _place(path: Path, name: str) -> str:
    """``file, line 3`` of an option. Looked up only when there is something to say about it."""
    root = yaml.compose(path.read_bytes(), Loader=_LOADER)
    lines = [key.start_mark.line + 1 for key, _ in root.value if key.value == str(name)] if root else []
    return f"{path}, line {lines[-1]}" if lines else str(path)


def _from_env(variable: str, text: str, hint: Any) -> Any:
    if hint is str:
        return text
    if str in typing.get_args(hint) and type(None) in typing.get_args(hint):
        return text or None
    try:
        return yaml.load(text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{variable}: not valid YAML: {_one_line(error)}") from error


def _checked(name: str, value: Any, hints: Mapping[str, Any], names: set[str], where: Callable[[], str]) -> Any:
    if name not in names:
        # A minion's alone: what a master's mean is told by `saltern import`.
        if "host_root" in names and (advice := loaded(_STOCK, "said_of")(str(name))):
            raise ConfigError(f"{where()}: option '{name}' is stock Salt's: {advice}")
        near = close_matches(str(name), names, n=1)
        raise ConfigError(f"{where()}: unknown option '{name}'" + (f"; the nearest is '{near[0]}'" if near else ""))
    hint = hints[name]
    if not _fits(value, hint):
        raise ConfigError(f"{where()}: option '{name}' must be {_named(hint)}, not {value!r}")
    return value


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if hint is Any:
        return True
    if origin in (types.UnionType, typing.Union):
        return any(_fits(value, arm) for arm in typing.get_args(hint))
    if origin is list:
        (item,) = typing.get_args(hint)
        return isinstance(value, list) and all(_fits(entry, item) for entry in value)
    if origin is dict:
        key, item = typing.get_args(hint)
        return isinstance(value, dict) and all(_fits(k, key) and _fits(v, item) for k, v in value.items())
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _named(hint: Any) -> str:
    plain = {int: "a whole number", str: "text", bool: "true or false", type(None): "empty", Any: "anything"}
    if hint in plain:
        return plain[hint]
    arms = [_named(arm) for arm in typing.get_args(hint)]
    if typing.get_origin(hint) is list:
        return f"a list (of {arms[0]})"
    if typing.get_origin(hint) is dict:
        return f"a map ({arms[0]}: {arms[1]})"
    return " or ".join(arms)
