"""The options of the master's roles and of the operators' commands, without those of the file server and the state system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saltern.kit.config.fileserver_options import FileserverOptions
from saltern.kit.config.option_fields import Values, option
from saltern.kit.config.state_options import StateOptions


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class WorkerOptions(Values):
    """The configuration options of mworker processes and their pools. MasterOptions inherits them."""

    worker_threads: int = option(
        5,
        "number of workers of `salt-master` if worker_processes is not set; without effect on a single `saltern mworker`",
    )
    worker_processes: int = option(
        1,
        "number of workers of one `saltern mworker`; more than one: a parent process supervises them, and they share the memory "
        "of the parent's modules",
    )
    worker_pools: dict[str, Any] = option(
        {},
        "pool name -> map with worker_count and commands; workers are distributed in proportion to "
        "worker_count; empty: one pool",
    )
    worker_pools_enabled: bool = option(True, "use worker_pools; False: all workers are in one pool")
    worker_pool: str = option(
        "", "pool of this worker (same as `saltern mworker --pool`); empty: the pool that lacks most workers"
    )
    request_deadline: int = option(
        60,
        "seconds that a request may wait for a worker, and that a worker may take for it unless "
        "request_deadlines has the command",
    )
    request_deadlines: dict[str, int] = option(
        {}, "command -> seconds that a worker may take for it, in place of the defaults in docs/requests.md"
    )
    worker_silence: int = option(
        4, "seconds without a heartbeat after which a worker counts as dead and its request goes to another worker"
    )
    max_waiting_requests: int = option(
        20000, "largest number of requests that wait for a worker; further requests are refused at once"
    )
    max_waiting_bytes: int = option(
        128 * 1024 * 1024,
        "largest total size in bytes of requests that wait for a worker; further requests are refused at once",
    )
    minion_requests_at_once: int = option(
        0, "largest number of requests of one minion that the workers of a pool handle at once; 0: all workers but one"
    )
    minion_requests_per_second: int = option(
        500,
        "largest rate of requests of one minion over more than ten seconds; further ones wait, and are refused after 30 s "
        "(as when the queue is full); 0: unlimited",
    )
    minion_bytes_per_second: int = option(
        16 * 1024 * 1024, "the same of bytes of requests of one minion; a single request may be larger; 0: unlimited"
    )
    address_connections_per_second: int = option(
        500,
        "largest rate of new connections of one address (IPv6: one /64) to 4506 over more than 30 s; further ones are closed; "
        "0: unlimited",
    )
    address_requests_per_second: int = option(
        2000,
        "largest rate of requests of one address (IPv6: one /64) on 4506 over more than 30 s; above it the address's "
        "connections are read later; 0: unlimited",
    )
    worker_cache_bytes: int = option(
        64 * 1024 * 1024,
        "bytes of memory that a worker uses at most to keep minions' session keys, and as many for their tokens; minions that were "
        "not heard of for longest are dropped first, and their keys are derived again",
    )
    worker_max_requests: int = option(
        0, "number of requests after which a worker restarts, between two requests; 0: never"
    )
    worker_max_rss: int = option(
        0, "bytes of memory (RSS) above which a worker restarts, between two requests; 0: never"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class MasterOptions(StateOptions, FileserverOptions, WorkerOptions):
    """The options of every master role and of the commands that connect to them (file ``master``)."""

    id: str = option(
        "master_master",
        "name of the master: in events, in its runners' jobs, and as the id for which orchestrations compile pillar. A stock "
        "master without `id` has its host's name with _master",
    )
    user: str = option("", "user name that jobs are recorded under; empty: the user who runs the command")
    batch_safe_limit: int = option(0, "`salt` runs a job as a batch if at least so many minions match; 0: never")
    batch_safe_size: str | int = option(8, "number or percentage of minions at the same time in such a batch")
    keysize: int = option(
        2048,
        "bits of key pairs that `salt-key --gen-keys` and `key.gen` make; at least 2048. For the master's own: saltern keygen",
    )
    pillar_opts: bool = option(
        False, "each minion's pillar has the master's options as `master`, without passwords of Redis and of the proxy"
    )
    pillarenv: str | None = option(None, "pillar environment of minions that name none")
    extension_modules: str = option(
        "/var/cache/salt/master/extmods",
        "directory of synced users' modules, with subdirectories pillar/, tops/, modules/ and so on",
    )
    interface: str = option("0.0.0.0", "address on which ports 4505 and 4506 listen")
    internal_interface: str = option("0.0.0.0", "address on which the encrypted internal ports and 4507 listen")
    publish_port: int = option(4505, "port of publications to minions")
    ret_port: int = option(4506, "port of minions' requests")
    control_port: int = option(4507, "port of operators' commands: publish, runner, wheel, jobs, keys")
    event_pull_port: int = option(4512, "port on which the event publisher receives events")
    event_pub_port: int = option(4513, "port on which the event publisher publishes events")
    workers_port: int = option(4516, "port on which the reqserver passes requests to workers")
    reqserver_host: str | list[str] = option(
        "127.0.0.1",
        "host name or address of the reqserver, for workers and commands; of several reqservers a list, or a name that "
        "resolves to several addresses",
    )
    eventpublisher_host: str | list[str] = option(
        "127.0.0.1",
        "host name or address of the event publisher, for roles and commands; of several a list, or a name that resolves "
        "to several addresses",
    )
    ret_port_shared: bool = option(
        False,
        "several reqservers of one machine listen on the same address and ret_port; the kernel gives each new connection to "
        "one of them",
    )
    redis_url: str = option(
        "redis://127.0.0.1:6379/0",
        "URL of Redis: redis://, rediss:// (TLS), unix://, redis+sentinel://HOST,HOST/SERVICE/DB or "
        "redis+cluster://HOST,HOST; file:///PATH: a file with the URL, whose password may be replaced while roles run",
    )
    redis_sentinels: list[str] = option(
        [],
        "Sentinels that know the Redis master, each HOST or HOST:PORT (26379); with the next options in place of redis_url",
    )
    redis_sentinel_master: str = option("mymaster", "name under which the Sentinels (redis_sentinels) know the master")
    redis_sentinel_user: str = option("", "user who signs in at the Sentinels; empty: their default user")
    redis_sentinel_password: str = option("", "password for the Sentinels; empty: they ask for none")
    redis_user: str = option("", "with redis_sentinels: user of Redis (ACL); empty: the default user")
    redis_password: str = option("", "with redis_sentinels: password for Redis; empty: it asks for none")
    redis_db: int = option(0, "with redis_sentinels: number of the database")
    redis_tls: bool = option(False, "with redis_sentinels: TLS to the Sentinels and to Redis")
    redis_tls_ca: str = option("", "with redis_tls: file with the certificates that sign theirs; empty: the system's")
    redis_tls_cert: str = option("", "with redis_tls: file with this client's certificate; empty: none")
    redis_tls_key: str = option("", "with redis_tls: file with the private key of redis_tls_cert")
    redis_dir: str = option(
        "/var/lib/saltern/redis",
        "directory of the socket and the data of the Redis that `salt-master` starts if redis_url is not set; while it runs, "
        "its socket there is the default of redis_url",
    )
    redis_wait_replicas: int = option(
        0,
        "number of replicas that must have a job or return before it is acknowledged; 0: the Redis master "
        "alone is enough",
    )
    redis_wait_aof: bool = option(
        False,
        "acknowledge a job or return only after Redis wrote it to disk (WAITAOF, Redis 7.2); needs appendonly yes",
    )
    redis_wait_ms: int = option(
        1500,
        "milliseconds to wait for replicas and disk (at most 1500); after that the job or return is not "
        "acknowledged, and the sender repeats it",
    )
    key_dir: str = option(
        "", "directory of this role's keys, created by `saltern keygen`; empty: <config dir>/keys/<role>"
    )
    published_port: int = option(
        0, "publish port that minions connect to, if a port mapping changes it; 0: publish_port"
    )
    timeout: int = option(
        5, "seconds that `salt` waits for returns before it asks the minions whether the job still runs"
    )
    show_timeout: bool = option(True, "`salt` lists minions that did not return")
    regions: dict[str, str] = option(
        {},
        "region name -> configuration directory of that region's master, for `salt --region` and `salt-run --region`; relative "
        "to this configuration's directory, `.` is this one (docs/operations/regions.md)",
    )
    default_regions: list[str] = option(
        [], "regions that `salt` asks without --region: names of the option regions, or `all`; empty: only this master"
    )
    show_jid: bool = option(False, "`salt` prints the JID")
    cli_summary: bool = option(False, "`salt` prints how many minions returned")
    gather_job_timeout: int = option(10, "seconds that minions have to answer whether a job still runs")
    keep_jobs_seconds: int = option(86400, "seconds that a job stays in the job cache")
    job_cache: bool = option(
        True, "keep finished jobs in the job cache; False: only a few minutes, as `salt` and delivery need"
    )
    job_cache_bytes: int = option(
        0,
        "largest total size in bytes of loads and returns in the job cache; above it the oldest finished jobs "
        "are deleted; 0: unlimited",
    )
    compress_return_bytes: int = option(
        262144, "size in bytes above which a return is stored compressed, in a key beside Salt's; 0: never"
    )
    file_buffer_size: int = option(1048576, "size in bytes of one chunk of a served file")
    auto_accept: bool = option(False, "accept every new minion key; for labs only")
    open_mode: bool = option(False, "do not check minion keys at all; for labs only")
    autosign_file: str = option("", "file of minion ids (globs, regular expressions) whose keys are accepted at once")
    autosign_dir: str = option("", "directory with one file for each minion id whose key is accepted once")
    autosign_timeout: int = option(120, "minutes after which a file in autosign_dir is ignored; 0: never")
    autosign_grains_dir: str = option(
        "",
        "directory of files named after grains: a minion's key is accepted at once if its grain equals a line "
        "of the file",
    )
    autoreject_file: str = option("", "file of minion ids (globs, regular expressions) whose keys are rejected at once")
    master_render_time_limit: int = option(
        30,
        "seconds of computing time (CPU) for the pillar of one minion, for each module of its master_tops, or for the reactor SLS "
        "of one event; what takes longer is an error; 0: no limit but jinja_time_limit for each file",
    )
    pillar_override_from_minions: bool = option(
        False,
        "let a pillar override that a minion sends choose its pillar, as Salt does; False: only an override that the master "
        "published to the minion does, another one is merged last",
    )
    permissive_pki_access: bool = option(
        False, "also use the files of autosign_file, autosign_grains_dir and autoreject_file that their group may write"
    )
    max_minions: int = option(0, "largest number of connected minions; 0: unlimited")
    max_pending_keys: int = option(
        10000, "largest number of keys that wait for acceptance; further minions are turned away"
    )
    minimum_auth_version: int = option(3, "oldest message version that is accepted (2: minions before 3006.12)")
    request_server_ttl: int = option(0, "age in seconds above which a request is refused; 0: never")
    request_window: int = option(
        300,
        "age in seconds above which a minion's request that changes something is refused, by the clock that the minion's "
        "requests show, and for which its nonce is remembered; at most 300; 0: requests can be repeated",
    )
    publish_session: int = option(86400, "seconds after which session keys are replaced")
    aes_rotation_interval: int = option(86400, "seconds after which the publication key is replaced")
    rotate_aes_key: bool = option(True, "replace the publication key when a minion key is deleted or rejected")
    sign_pub_messages: bool = option(True, "sign publications with the master's key")
    publish_signing_algorithm: str = option(
        "PKCS1v15-SHA1", "signature algorithm of publications: PKCS1v15-SHA1 or PKCS1v15-SHA224"
    )
    master_sign_pubkey: bool = option(
        False, "sign the master's public key with <master_sign_key_name>.pem, for minions that verify it"
    )
    master_sign_key_name: str = option(
        "master_sign",
        "file name, without .pem and .pub, of the key for master_sign_pubkey, in this role's key directory",
    )
    master_use_pubkey_signature: bool = option(
        False, "read the signature of the public key from the file master_pubkey_signature instead of creating it"
    )
    master_pubkey_signature: str = option(
        "master_pubkey_signature", "file of the signature of the public key, in this role's key directory"
    )
    zmq_filtering: bool = option(False, "publications carry a topic, so that minions receive only their own")
    allow_minion_key_revoke: bool = option(True, "a minion may delete its own key")
    peer: dict[str, list[Any]] = option(
        {}, "regular expression of minion ids -> functions that these minions may publish to other minions; empty: none"
    )
    peer_run: dict[str, list[Any]] = option(
        {},
        "regular expression of minion ids -> runners that these minions may run on the master, and rules such as"
        " {'@wheel': [key.list_all]} for wheel functions; empty: none",
    )
    file_recv: bool = option(
        False, "minions may send files (cp.push); they are stored in <cachedir>/minions/<id>/files"
    )
    file_recv_max_size: int = option(100, "largest file in megabytes that a minion may send")
    file_recv_max_total: int = option(
        1000, "total size in megabytes of the files of one minion; a further chunk is refused; 0: unlimited"
    )
    grains_max_bytes: int = option(
        4 * 1024 * 1024,
        "largest size in bytes of a minion's grains; larger ones are not stored, and the minion's pillar gets an error; "
        "0: unlimited",
    )
    mine_max_bytes: int = option(
        8 * 1024 * 1024,
        "largest total size in bytes of the mine of one minion; what would make it larger is not stored; 0: unlimited",
    )
    minion_events_per_second: int = option(
        200,
        "largest rate of events that one minion causes over more than a minute, for each worker; further ones are "
        "dropped; 0: unlimited",
    )
    minion_event_bytes_per_second: int = option(
        1024 * 1024, "the same of bytes of events that a minion causes, for each worker; 0: unlimited"
    )
    unasked_returns_per_hour: int = option(
        10000,
        "largest number of returns in an hour that one minion stores for jobs that do not expect it: jobs of its own "
        "(salt-call, schedule) and jobs that the job cache does not have; further ones are dropped; 0: unlimited",
    )
    unasked_return_bytes_per_hour: int = option(
        64 * 1024 * 1024, "the same of bytes of such returns, as they are stored; 0: unlimited"
    )
    unknown_return_seconds: int = option(
        3600, "seconds that a return stays whose job is not in the job cache; at most keep_jobs_seconds"
    )
    mine_get: dict[str, list[str]] | None = option(
        None,
        "regular expression of minion ids -> regular expressions of mine functions that these minions may "
        "read; empty: all",
    )
    minion_data_cache: bool = option(True, "store the grains of minions, for targeting")
    accept_unsigned_records: bool = option(
        False,
        "act on jobs, accepted keys, events, mine data and pillar in Redis without a code, and sign these keys: only "
        "during an upgrade from a snapshot before 0.1.0, whose roles did not sign",
    )
    audit: bool = option(
        True, "record sign-ins that change a key, publications, runners and wheel functions in Redis, as a hash chain"
    )
    audit_kept: int = option(100_000, "approximate number of entries of the audit record that Redis keeps")
    audit_max_bytes: int = option(
        100 * 1024 * 1024,
        "approximate bytes of the audit record that Redis keeps, whatever audit_kept says; 0: unlimited",
    )
    replay_window: int = option(
        300,
        "seconds during which a job is still delivered to minions that missed it, and sent by a publisher "
        "that was down",
    )
    max_request_bytes: int = option(64 * 1024 * 1024, "largest message in bytes that 4506 accepts")
    max_event_size: int = option(1048576, "largest event in bytes; in larger events the largest values are removed")
    loop_interval: int = option(60, "seconds between two rounds of maintenance")
    presence_events: bool = option(False, "fire salt/presence events every loop_interval")
    presence_window: int = option(180, "seconds after its last request during which a minion counts as present")
    roster_file: str = option("", "file of minion id -> host, for manage.safe_accept; empty: <config dir>/roster")
    ssh_user: str = option("root", "user name for SSH logins of manage.safe_accept")
    ssh_port: int = option(22, "port for SSH logins of manage.safe_accept")
    ssh_priv: str = option(
        "", "file of the private key for SSH logins of manage.safe_accept; empty: the keys of the worker's user"
    )
    ssh_timeout: int = option(65, "seconds to wait for an SSH connection of manage.safe_accept")
    schedule: dict[str, Any] = option(
        {}, "runners that the master starts on schedule: name -> map of function, times, ..."
    )
    reactor: list[dict[str, Any]] | str = option(
        [], "list of `tag glob: reactor SLS files`, or the path of a YAML file with this list"
    )
    event_return: list[str] | str = option([], "returners that store the events of the bus")
    event_return_queue: int = option(
        0, "number of events that are collected and passed to event_return together; 0: each event at once"
    )
    event_return_queue_max_seconds: int = option(
        0, "seconds after which collected events are passed to event_return even if they are fewer; 0: no limit"
    )
    event_return_whitelist: list[str] = option([], "tag globs of events that are passed to event_return; empty: all")
    event_return_blacklist: list[str] = option([], "tag globs of events that are not passed to event_return")
    ext_job_cache: str = option(
        "", "returner to which minions send every return besides the master; the master passes its name with each job"
    )
    master_job_cache: str = option(
        "local_cache",
        "returner on the master that also stores jobs and returns; local_cache, salt_cache or redis: only Redis stores "
        "them",
    )
    archive_jobs: bool = option(
        False,
        "returners pgjsonb and mysql as master_job_cache: copy rows older than keep_jobs_seconds to archive tables before "
        "they are deleted",
    )
    returner_dirs: list[str] = option([], "directories of users' returners on the master")
    reactor_tries: int = option(
        3,
        "number of tries to handle an event whose reactions fail; after that the event is listed by `salt-run "
        "reactor.dead`",
    )
    events_kept: list[str] = option(
        [], "tag globs of events that Redis stores for later readers, besides those that the reactor wants"
    )
    events_kept_count: int = option(10000, "approximate number of events that Redis stores")
    reactor_worker_threads: int = option(10, "largest number of reactions that run at once")
    reactor_worker_hwm: int = option(
        10000, "largest number of events that one reactor holds; further events wait in Redis"
    )
    reactor_niceness: int = option(0, "niceness of the reactor process, added to its current one")
    control_acl: dict[str, list[str]] = option(
        {},
        "client key name -> permissions: function patterns, @runner, @wheel, @jobs. Without a row, `cli` may do everything, "
        "the master's roles what their work needs, and every other key nothing",
    )
    publisher_acl: dict[str, list[Any]] = option(
        {}, "operator's key name -> functions, `target: functions`, @runner, @wheel, as Salt has them for users"
    )
    external_auth: dict[str, Any] = option(
        {},
        "backend (file, ldap, oidc, pam, sharedsecret) -> user, or group with a % at the end -> functions, "
        "`target: functions`, @runner, @wheel, @jobs, @events: who may use the API and `salt -a` (docs/api.md)",
    )
    permissive_acl: bool = option(
        False, "the row `*` of external_auth counts for every user, also for users with a row"
    )
    token_expire: int = option(43200, "seconds for which a token of external_auth, and a session of the API, is valid")
    token_expire_user_override: bool | dict[str, list[str]] = option(
        False, "users may ask for tokens that live longer than token_expire: all, or backend -> users"
    )
    eauth_tokens_per_user: int = option(
        100, "largest number of tokens of one user of external_auth; a further sign-in revokes the one that ends first"
    )
    eauth_failures_per_minute: int = option(
        20,
        "failed sign-ins of one address within a minute after which further ones are refused; of one user five times as many; "
        "0: unlimited",
    )
    sharedsecret: str = option("", "password of every user of the backend sharedsecret of external_auth")
    netapi_enable_clients: list[str] = option(
        [],
        "clients that the API offers: local, local_async, local_batch, local_subset, runner, runner_async, wheel, wheel_async; "
        "as in Salt none by default",
    )
    rest_cherrypy: dict[str, Any] = option({}, "settings of the API, as Salt has them (docs/api.md#settings)")
    publisher_acl_blacklist: dict[str, list[str]] = option(
        {}, "users, and modules (functions), whose publications are refused: names, globs, regular expressions"
    )


#: `salt`, `salt-key` and `salt-run` read the master's file, so they have the master's options.
ClientOptions = MasterOptions
