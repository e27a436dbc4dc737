"""The options of the master's roles and of the operators' commands, without those of the file server and the state system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saltern.kit.config.fileserver_options import FileserverOptions
from saltern.kit.config.option_fields import Values, option
from saltern.kit.config.state_options import StateOptions


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class WorkerOptions(Values):
    """The options of workers and their pools; MasterOptions inherits them."""

    worker_threads: int = option(
        5, "taken as Salt's, without effect here: a worker is a process, start more of mworker"
    )
    worker_pools: dict[str, Any] = option(
        {}, "pool -> worker_count and commands; workers are spread over the pools as these say; empty: one pool"
    )
    worker_pools_enabled: bool = option(True, "worker_pools counts; else all workers are one pool")
    worker_pool: str = option(
        "", "pool of this worker (`saltern mworker --pool` says the same); empty: the one that lacks workers most"
    )
    request_deadline: int = option(
        60, "seconds that a request may wait for a worker, and be worked on where request_deadlines has no other"
    )
    request_deadlines: dict[str, int] = option(
        {}, "command -> seconds that it may be worked on, in place of those in docs/requests.md"
    )
    worker_silence: int = option(4, "seconds without a pulse after which a worker is given up and its request goes on")
    max_waiting_requests: int = option(20000, "requests that may wait for a worker; more are refused at once")
    max_waiting_bytes: int = option(256 * 1024 * 1024, "bytes of the requests that may wait for a worker")
    minion_requests_at_once: int = option(
        0, "requests of one minion that the workers of a pool hold at once; 0: all workers but one"
    )
    worker_max_requests: int = option(0, "a worker begins anew after so many requests, between two of them; 0: never")
    worker_max_rss: int = option(0, "a worker begins anew once it has so many bytes of memory; 0: never")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MasterOptions(StateOptions, FileserverOptions, WorkerOptions):
    """The options of every master role and of the commands that connect to them (file ``master``)."""

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
    roster_file: str = option("", "minion -> host, for manage.safe_accept; empty: <config dir>/roster")
    ssh_user: str = option("root", "who is signed in there, by ssh")
    ssh_port: int = option(22, "its port")
    ssh_priv: str = option("", "file of the key for it; empty: those of who runs the worker")
    ssh_timeout: int = option(65, "seconds in which a machine has to take the connection")
    schedule: dict[str, Any] = option({}, "runners that the master starts by itself: name -> function, times, ...")
    reactor: list[dict[str, Any]] | str = option(
        [], "list of `tag glob: reactor SLS files`, or a YAML file that holds one"
    )
    event_return: list[str] | str = option([], "returners that get the events of the bus")
    event_return_queue: int = option(0, "events that are kept back and handed over together")
    event_return_queue_max_seconds: int = option(0, "seconds after which they are, few as they may be; 0: no limit")
    event_return_whitelist: list[str] = option([], "tag globs of events for event_return; empty: all")
    event_return_blacklist: list[str] = option([], "tag globs of events that event_return does not get")
    ext_job_cache: str = option(
        "", "returner that minions send every return to, besides the master, which tells it of jobs"
    )
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


#: What `salt`, `salt-key` and `salt-run` read is the master's file.
ClientOptions = MasterOptions
