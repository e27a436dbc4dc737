"""The options that master and minion have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saltern.kit.config.option_fields import Values, option


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class StateOptions(Values):
    """The options of the state system, on the master (pillar, reactor) and on the minion."""

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
    conf_file: str = option(
        "", "what users' modules find as `__opts__['conf_file']`; empty: <config dir>/master or <config dir>/minion"
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
