"""The configuration options that master and minion have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saltern.kit.config.option_fields import Values, option


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class StateOptions(Values):
    """The configuration options of the state system, on the master (pillar, reactor) and on the minion."""

    file_roots: dict[str, list[str]] = option({"base": ["/srv/salt"]}, "saltenv -> directories of the state tree")
    pillar_roots: dict[str, list[str]] = option({"base": ["/srv/pillar"]}, "environment -> directories of pillar files")
    file_ignore_glob: list[str] | str = option([], "globs of paths in file_roots that are not served")
    file_ignore_regex: list[str] | str = option([], "regular expressions of paths in file_roots that are not served")
    fileserver_followsymlinks: bool = option(
        True, "follow all symbolic links in file_roots; False: only links whose target is in the same root"
    )
    fileserver_ignoresymlinks: bool = option(False, "do not list symbolic links in file_roots")
    fileserver_list_cache_time: int = option(
        0, "seconds for which a file list of file_roots is used without checking the directories; 0: always check"
    )
    hash_type: str = option("sha256", "hash algorithm of served files and of key fingerprints")
    renderer: str = option("jinja|yaml", "pipe of renderers for files without a shebang line")
    renderer_blacklist: list[str] = option([], "renderers that are never used: they are removed from every pipe")
    renderer_whitelist: list[str] = option(
        [], "the only renderers that are used: others are removed from every pipe; empty: all"
    )
    gpg_keydir: str = option("", "directory of the keys of the renderer gpg; empty: <config dir>/gpgkeys")
    gpg_decrypt_must_succeed: bool = option(
        True, "fail if a message cannot be decrypted; False: leave the encrypted text in place"
    )
    state_top: str = option("top.sls", "name of the top file")
    state_top_saltenv: str | None = option(None, "the only saltenv whose top file is used; null: all")
    default_top: str = option(
        "base", "saltenv whose top file is used for saltenvs without one (top_file_merging_strategy same)"
    )
    env_order: list[str] = option([], "order in which environments' top files are merged")
    top_file_merging_strategy: str = option("merge", "how top files are merged: merge, merge_all or same")
    pillar_source_merging_strategy: str = option(
        "smart", "how pillar files are merged: smart, recurse, aggregate, overwrite or none"
    )
    pillar_merge_lists: bool = option(False, "concatenate lists of pillar files instead of replacing them")
    secret_pillar: list[str] = option(
        [], "paths of pillar values that returns, events and logs do not show, such as `users:*:password` (globs)"
    )
    pillar_includes_override_sls: bool = option(False, "included pillar files override the file that includes them")
    pillar_safe_render_error: bool = option(
        True, "tell a minion only which pillar file failed; the reason is only in the master's log"
    )
    pillarenv_from_saltenv: bool = option(False, "use the saltenv of states as the pillar environment")
    ext_pillar: list[dict[str, Any]] = option([], "external pillars in order, each `name: arguments`")
    ext_pillar_first: bool = option(False, "run external pillars before pillar files, which then see their data")
    ext_pillar_timeout: int = option(30, "seconds for one external pillar, and for one command of master_tops")
    on_demand_ext_pillar: list[str] = option(
        ["libvirt", "virtkey"], "external pillars that minions may request by pillar.ext"
    )
    decrypt_pillar: list[Any] | dict[str, Any] = option(
        [], "pillar paths, or `path: renderer`, that are decrypted after the compilation"
    )
    decrypt_pillar_default: str = option("gpg", "renderer of decrypt_pillar paths that name none")
    decrypt_pillar_delimiter: str = option(":", "separator of the keys in decrypt_pillar paths")
    decrypt_pillar_renderers: list[str] = option(["gpg"], "renderers that decrypt_pillar may use")
    master_tops: dict[str, Any] = option(
        {}, "tops module -> its options; ext_nodes: the command of an external node classifier"
    )
    master_tops_first: bool = option(False, "apply states of master_tops before those of the top file")
    tracing: dict[str, Any] = option(
        {}, "traces by OpenTelemetry: enabled, exporter, endpoint, ... (docs/operations/tracing.md)"
    )
    root_dir: str = option("/", "directory that is put in front of the paths of all files and directories")
    default_include: list[str] | str = option(
        "", "globs of configuration files that are read after this one; empty: master.d/*.conf or minion.d/*.conf"
    )
    include: list[str] | str = option([], "further globs of configuration files, read after those of default_include")
    conf_file: str = option(
        "", "value of `__opts__['conf_file']` in users' modules; empty: <config dir>/master or <config dir>/minion"
    )
    module_settings: dict[str, Any] = option(
        {}, "settings of modules and returners by dotted name; `redis.host: x` at the top level of the file is the same"
    )
    enable_zip_modules: bool = option(False, "load users' modules from zip archives, `_modules/NAME.zip`")
    cython_enable: bool = option(
        False, "load users' modules of Cython, `_modules/NAME.pyx`, where pyximport is installed"
    )
    module_dirs: list[str] = option([], "directories of users' execution modules")
    pillar_dirs: list[str] = option([], "directories of users' external pillars")
    render_dirs: list[str] = option([], "directories of users' renderers")
    top_dirs: list[str] = option([], "directories of users' tops modules")
    providers: dict[str, str] = option(
        {},
        "virtual module -> the file that provides it (service: service_sysv); others are chosen by the host's system",
    )
    venv_bin: str = option(
        "", "program for virtualenv.create; venv: Python's own module; empty: the first one that is installed"
    )
    sdb_dirs: list[str] = option([], "directories of users' SDB drivers")
    states_dirs: list[str] = option([], "directories of users' state modules")
    grains_dirs: list[str] = option([], "directories of users' grain modules")
    utils_dirs: list[str] = option([], "directories of users' utility modules (`__utils__`, and importable by name)")
    matchers_dirs: list[str] = option([], "directories of users' matchers")
    runner_dirs: list[str] = option([], "directories of users' runners, on the master")
    engines: list[Any] | dict[str, Any] = option(
        [], "programs that run beside the minion or master: list of `name: {arguments}`, or map (docs/engines.md)"
    )
    engines_dirs: list[str] = option([], "directories of users' engines")
    executor_dirs: list[str] = option([], "directories of users' executors")
    serializers_dirs: list[str] = option([], "directories of users' serializers")
    extmod_whitelist: dict[str, Any] = option(
        {}, "kind -> the only users' modules that are fetched from the state tree; empty: all"
    )
    extmod_blacklist: dict[str, Any] = option({}, "kind -> users' modules that are not fetched from the state tree")
    disabled_requisites: list[str] = option([], "requisites (require, watch_in, ...) that are ignored")
    failhard: bool = option(False, "stop the state run after the first failed state")
    state_auto_order: bool = option(
        True, "run states in the order of their definition; False: in the order of their names"
    )
    state_aggregate: bool | list[str] = option(
        False, "merge states that support it (pkg) into one call; a list: only these state modules"
    )
    state_max_parallel: int = option(0, "largest number of states with parallel: true that run at once; 0: unlimited")
    state_unknown_arguments: str = option(
        "warn",
        "arguments that a state function ignores, because it does not know them: warn (the state's warnings name them)"
        " or error (the state fails)",
    )
    global_state_conditions: dict[str, Any] = option(
        {}, "state, state module or * -> compound targets of the minions that may run it"
    )
    state_events: bool = option(False, "fire an event after each state of a run")
    jinja_env: dict[str, Any] = option({}, "options of the Jinja environment of file templates")
    jinja_sls_env: dict[str, Any] = option({}, "options of the Jinja environment of SLS files")
    jinja_trim_blocks: bool = option(False, "Jinja removes the newline after a block")
    jinja_lstrip_blocks: bool = option(False, "Jinja removes white space before a block")
    jinja_time_limit: int = option(
        20, "seconds of computing time for rendering one file, with any renderer; commands that it runs are not counted"
    )
    jinja_dns_check: bool = option(True, "templates may look up names and try addresses with the filter dns_check")
    jinja_http_query: bool = option(False, "templates may send HTTP requests with the filter http_query")
    allow_undefined: bool = option(False, "undefined variables in templates are empty; False: they are an error")
    verify_ssl: bool = option(True, "http.query verifies the certificates of servers")
    ca_bundle: str | None = option(None, "file of CA certificates for http.query; null: the system's")
    http_connect_timeout: float = option(20.0, "seconds for http.query to connect")
    http_request_timeout: float = option(3600.0, "seconds for a whole request of http.query")
    http_max_body: int = option(
        107374182400, "largest response body in bytes that http.query reads; a larger one is an error"
    )
    proxy_host: str = option(
        "", "host name of the proxy for http.query; empty: from the environment variables https_proxy, no_proxy, ..."
    )
    proxy_port: int = option(0, "port of proxy_host")
    proxy_username: str = option("", "user name for the proxy")
    proxy_password: str = option("", "password for the proxy")
    no_proxy: list[str] = option([], "hosts that http.query connects to without the proxy")
    nodegroups: dict[str, Any] = option({}, "nodegroup name -> compound target")
    range_server: str = option("", "host:port of the range server for the targets `-R` and `R@`; empty: none")
    output: str = option("", "outputter if --out is not given; empty: the one that the return names, else nested")
    output_file: str = option("", "file to which output is appended if --out-file is not given")
    output_indent: int | str | None = option(
        "",
        "spaces of indentation for json, yaml and pprint; negative or null: one line; pretty: four spaces, keys sorted",
    )
    color: bool | str | None = option(
        None, "true, false, or the name of one colour for everything; null: colours on a terminal only"
    )
    color_theme: str = option("", "YAML file of colour name -> escape code (RED: '0;35')")
    strip_colors: bool = option(True, "remove control characters from returns before printing")
    outputter_dirs: list[str] = option([], "directories of users' outputters")
    out_table: dict[str, Any] = option(
        {}, "options of the table outputter; Salt's names out.table.NAME are accepted, too"
    )
    state_output: str = option(
        "full", "form of state returns: full, terse, mixed, changes or filter; with suffix _id: IDs instead of names"
    )
    state_output_exclude: list[Any] | str | bool = option([], "results (True, False, None) that the form filter omits")
    state_output_terse: list[Any] | str | bool = option(
        [], "results (True, False, None) that the form filter prints as one line"
    )
    state_output_profile: bool = option(True, "print the start time and duration of each state")
    state_output_pct: bool = option(False, "print percentages in the summary")
    state_verbose: bool = option(True, "print states without changes, too")
    state_output_diff: bool = option(False, "print only states with changes")
    state_tabular: bool | str = option(False, "align terse lines; a text: format of these lines")
    state_compress_ids: bool = option(False, "print names of one ID that have the same result as one state")
    log_level: str = option(
        "warning", "least severity that is logged: quiet (nothing), critical, error, warning, info, debug"
    )
    log_file: str = option(
        "",
        "file that also receives the log, or a URI of a syslog: file:///dev/log, udp://HOST:PORT; empty: stderr only",
    )
    log_level_logfile: str | None = option(None, "least severity that is written to log_file; null: log_level")
    log_granular_levels: dict[str, str] = option({}, "logger -> least severity that it logs")
    log_fmt_console: str = option("", "format of a line on stderr, as Salt's; empty: log_format says it")
    log_fmt_logfile: str = option(
        "%(asctime)s,%(msecs)03d [%(name)-17s:%(lineno)-4d][%(levelname)-8s][%(process)d] %(message)s",
        "format of a line in log_file, as Salt's",
    )
    log_datefmt: str = option("%H:%M:%S", "format of times in log_fmt_console")
    log_datefmt_console: str = option("", "the same, preferred; empty: log_datefmt")
    log_datefmt_logfile: str = option("%Y-%m-%d %H:%M:%S", "format of times in log_file")
    log_rotate_max_bytes: int = option(0, "size in bytes at which log_file is renamed and begun anew; 0: never")
    log_rotate_backup_count: int = option(0, "number of renamed log files that are kept")
    log_format: str = option("text", "text or json (one object a line, with role, jid and minion)")
    health_host: str = option("127.0.0.1", "address of /healthz, /readyz and /metrics")
    health_port: int = option(0, "port of /healthz, /readyz and /metrics; 0: not served")
    config_error_pause: int = option(
        0, "seconds that a role with a wrong configuration serves the error on /readyz before it exits"
    )
