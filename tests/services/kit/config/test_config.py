"""Where options come from, in which order, and what is said about a wrong one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from masterstore.client import Client
from masterstore.errors import StoreError
from saltern.kit.config.master import (
    ConfigError,
    MasterOptions,
    as_opts,
    config_directory,
    key_directory,
    load_client,
    load_master,
    shown,
)
from saltern.kit.config.minion_options import MinionOptions, load_minion
from saltern.kit.config.redis_address import own_redis_url

#: Writes files {name: text} and gives their directory.
Files: TypeAlias = Callable[[Mapping[str, str]], str]

#: What a minion's configuration directory fills in where nothing is said.
_FILLED = {"grains_file": "/g", "schedule_file": "/s", "beacons_file": "/b"}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    def write(texts: Mapping[str, str]) -> str:
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        return str(tmp_path)

    return write


def test_without_files_the_defaults_hold(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "missing"):
        places = {"gpg_keydir": str(directory / "gpgkeys"), "conf_file": str(directory / "master")}
        assert load_master(str(directory), {}) == MasterOptions(**places)
        seen = as_opts(load_master(str(directory), {}))
        assert (seen["conf_file"], seen["config_dir"]) == (str(directory / "master"), str(directory))


@pytest.mark.parametrize(
    ("texts", "env", "timeout"),
    [
        ({"master": ""}, {}, 5),
        ({"master": "# nothing\n"}, {}, 5),
        ({"master": "timeout: 6\n"}, {}, 6),
        ({"master": "timeout: 6\n", "master.d/10.conf": "timeout: 7\n"}, {}, 7),
        ({"master.d/10.conf": "timeout: 7\n", "master.d/20.conf": "timeout: 8\n"}, {}, 8),
        ({"master.d/10.conf": "timeout: 7\n", "master.d/20.yaml": "timeout: 8\n"}, {}, 7),
        ({"master.d/10.conf": "timeout: 7\n"}, {"SALTERN_TIMEOUT": "9"}, 9),
        ({"master": "timeout: 6\n"}, {"SALTERN_MASTER": "somewhere", "SALTERN_ORACLE": "x", "OTHER_TIMEOUT": "1"}, 6),
        ({"minion": "auth_timeout: 6\n"}, {}, 5),
    ],
)
def test_later_sources_win(files: Files, texts: dict[str, str], env: dict[str, str], timeout: int) -> None:
    assert load_master(files(texts), env).timeout == timeout


@pytest.mark.parametrize(
    ("env", "name", "value"),
    [
        ({"SALTERN_ID": "007"}, "id", "007"),
        ({"SALTERN_USER": "yes"}, "user", "yes"),
        ({"SALTERN_AUTO_ACCEPT": "true"}, "auto_accept", True),
        ({"SALTERN_FILE_ROOTS": "{base: [/a, /b]}"}, "file_roots", {"base": ["/a", "/b"]}),
        ({"SALTERN_ENV_ORDER": "[base, dev]"}, "env_order", ["base", "dev"]),
        ({"SALTERN_REACTOR": "[{'salt/auth': [/srv/auth.sls]}]"}, "reactor", [{"salt/auth": ["/srv/auth.sls"]}]),
    ],
)
def test_variables_are_read_as_the_option_needs(env: dict[str, str], name: str, value: Any, tmp_path: Path) -> None:
    assert getattr(load_master(str(tmp_path), env), name) == value


@pytest.mark.parametrize(("text", "value"), [("2024", "2024"), ("dev", "dev"), ("", None)])
def test_a_variable_for_a_text_that_may_be_missing(text: str, value: str | None, tmp_path: Path) -> None:
    assert load_minion(str(tmp_path), {"SALTERN_SALTENV": text, "SALTERN_ID": "m"}).saltenv == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id: a\ntimeout: soon\n", "master, line 2: option 'timeout' must be a whole number, not 'soon'"),
        ("timeout: true\n", "must be a whole number, not True"),
        ("timeout: 5\nfile_roots: [/srv]\n", "line 2: option 'file_roots' must be a map (text: a list (of text)), not ['/srv']"),
        ("[a, b]\n", "must hold `option: value` lines, not a list"),
        ("just words\n", "must hold `option: value` lines, not a str"),
        ("timeout: 5\nfile_roots: {base: [a\n", "not valid YAML: line 3, column 1: did not find expected ',' or ']'"),
        ("timeout: 2024-13-45\n", "not valid YAML: a value cannot be read: month must be in 1..12"),
        ("timeout: 1\ntimeout: x\n", "line 2: option 'timeout'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file(files: Files, text: str, says: str) -> None:
    directory = files({"master": text})
    with pytest.raises(ConfigError) as caught:
        load_master(directory, {})
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{directory}/master")


def test_an_overlay_is_named_where_it_is_wrong(files: Files) -> None:
    directory = files({"master": "timeout: 5\n", "master.d/site.conf": "\ntimeout: x\n"})
    with pytest.raises(ConfigError, match=r"master\.d/site\.conf, line 2: option 'timeout'"):
        load_master(directory, {})


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"SALTERN_TIMEOUT": "soon"}, "SALTERN_TIMEOUT: option 'timeout' must be a whole number, not 'soon'"),
        ({"SALTERN_FILE_ROOTS": "{base: ["}, "SALTERN_FILE_ROOTS: not valid YAML"),
        ({"SALTERN_FILE_ROOTS": "/srv"}, "SALTERN_FILE_ROOTS: option 'file_roots' must be a map"),
        ({"SALTERN_TIMEOUT": "2024-13-45"}, "SALTERN_TIMEOUT: not valid YAML"),
    ],
)
def test_what_is_wrong_in_a_variable(env: dict[str, str], says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_master(str(tmp_path), env)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ("master.d/10-site.conf/x", "/master.d/10-site.conf: cannot be read: Is a directory"),
        ("master.d", "/master.d: cannot be read: Not a directory"),
    ],
)
def test_what_is_no_file_is_not_passed_over(files: Files, made: str, says: str) -> None:
    directory = files({"master": "timeout: 5\n"})
    (Path(directory) / made).parent.mkdir(parents=True, exist_ok=True)
    (Path(directory) / made).write_text("")
    with pytest.raises(ConfigError) as caught:
        load_master(directory, {})
    assert str(caught.value) == directory + says


def test_a_file_that_cannot_be_read(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = files({"master": "timeout: 5\n"})

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError, match="master: cannot be read: Permission denied"):
        load_master(directory, {})


def test_the_minion_has_a_name(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getfqdn", lambda name: "host.example")
    assert load_minion(files({"minion": "test: true\n"}), {}).id == "host.example"
    assert load_minion(files({"minion": "id: web1\n"}), {}).id == "web1"


@pytest.mark.parametrize(
    ("config_dir", "env", "directory"),
    [
        ("/a", {"SALT_CONFIG_DIR": "/b"}, "/a"),
        (None, {"SALT_CONFIG_DIR": "/b"}, "/b"),
        (None, {"SALT_CONFIG_DIR": ""}, "/etc/salt"),
        (None, {}, "/etc/salt"),
    ],
)
def test_the_directory(config_dir: str | None, env: dict[str, str], directory: str) -> None:
    assert config_directory(config_dir, env) == Path(directory)


def test_keys_are_beside_the_configuration_or_where_it_says() -> None:
    assert key_directory(MasterOptions(), "mworker", "/a") == Path("/a/keys/mworker")
    assert key_directory(MasterOptions(key_dir="/keys/mworker"), "mworker", "/a") == Path("/keys/mworker")


def test_commands_read_the_masters_file(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SALTERN_TIMEOUT", raising=False)
    assert load_client(files({"master": "timeout: 6\n"})).timeout == 6


@pytest.mark.parametrize("kind", [MasterOptions, MinionOptions])
def test_every_option_has_a_type_that_its_default_fits_and_a_sentence(
    kind: type[MasterOptions | MinionOptions], files: Files
) -> None:
    name, load = {MasterOptions: ("master", load_master), MinionOptions: ("minion", load_minion)}[kind]
    for item in dataclasses.fields(kind):
        assert item.metadata["doc"], item.name
    import yaml

    # Set, because empty ones are filled in.
    given: dict[str, Any] = {"id": "m", "gpg_keydir": "/k", "conf_file": "/c"} | (
        _FILLED if kind is MinionOptions else {}
    )
    defaults = {item.name: getattr(kind(), item.name) for item in dataclasses.fields(kind)}
    loaded = load(files({name: yaml.safe_dump(defaults | given)}), {})
    assert loaded == kind(**given)


def test_a_minion_keeps_set_grains_beside_its_configuration(files: Files) -> None:
    directory = files({"minion": "id: m"})
    assert load_minion(directory, {}).grains_file == f"{directory}/grains"


def test_defaults_are_not_shared() -> None:
    MasterOptions().file_roots["base"].append("/elsewhere")
    MasterOptions().control_acl["*"] = ["@all"]
    assert MasterOptions().control_acl == {}
    assert MasterOptions().file_roots == {"base": ["/srv/salt"]}


def test_options_by_name() -> None:
    opts = as_opts(MinionOptions(id="m"), id="other", more=1)
    assert (opts["id"], opts["more"], opts["keysize"]) == ("other", 1, 2048)


def test_names_with_a_dot_are_settings_of_modules_and_return_names_returners(
    files: Files,
) -> None:
    place = files(
        {
            "minion": "redis.host: a\nredis.port: 1\nreturn: redis\nmodule_settings: {slack.hook: x}\nid: m\n",
            "minion.d/site.conf": "redis.host: b\nother.redis.host: c\n",
        }
    )
    options = load_minion(place, env={})
    assert options.return_ == "redis"
    assert options.module_settings == {"slack.hook": "x", "redis.host": "b", "redis.port": 1, "other.redis.host": "c"}
    assert as_opts(options)["redis.host"] == "b"


def test_what_a_minion_applies_at_its_start_is_known(files: Files) -> None:
    with pytest.raises(ConfigError, match="startup_states: 'high' is none of highstate, sls, top"):
        load_minion(files({"minion": "startup_states: high\n"}), env={})


def test_what_becomes_of_unknown_arguments_of_states_is_known(files: Files) -> None:
    assert load_minion(files({"minion": "state_unknown_arguments: error\n"}), env={}).state_unknown_arguments == "error"
    with pytest.raises(ConfigError, match="state_unknown_arguments: 'fail' is neither warn nor error"):
        load_minion(files({"minion": "state_unknown_arguments: fail\n"}), env={})


def test_a_value_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("redis://:secret@r:6379/0\n")
    options = load_master(str(tmp_path), env={"SALTERN_REDIS_URL_FILE": str(tmp_path / "url")})
    # Read for each new connection: the password may be replaced.
    assert options.redis_url == f"file://{tmp_path}/url"


def test_an_option_whose_name_ends_in_file_is_itself(tmp_path: Path) -> None:
    assert load_master(str(tmp_path), env={"SALTERN_AUTOSIGN_FILE": "/a"}).autosign_file == "/a"


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"SALTERN_REDIS_PASSWORD_FILE: /nowhere: No such file or directory; mount the secret"
    ):
        load_master(str(tmp_path), env={"SALTERN_REDIS_PASSWORD_FILE": "/nowhere"})


def test_the_file_of_redis_url_may_be_missing(tmp_path: Path) -> None:
    """A role with its own login has no need of it; the first connection names it otherwise."""
    assert load_master(str(tmp_path), env={"SALTERN_REDIS_URL_FILE": "/nowhere"}).redis_url == "file:///nowhere"
    with pytest.raises(StoreError, match="/nowhere: No such file or directory"):
        Client("file:///nowhere", timeout=1, client_name="test")


@pytest.mark.parametrize(
    ("redis_url", "own", "used"),
    [
        ("redis://r:6379/0", "redis://mworker:p@r:6379/0", True),
        ("redis://:old@r:6379/0", "redis://mworker:p@r:6379/0", True),
        ("rediss://r:6379/0?ssl_ca_certs=/a", "rediss://mworker:p@r:6379/0?ssl_ca_certs=/b", True),
        ("file:///nowhere", "redis://mworker:p@r:6379/0", True),
        ("redis://other:6379/0", "redis://mworker:p@r:6379/0", False),
        ("redis://r:6379/1", "redis://mworker:p@r:6379/0", False),
        ("redis://r:6379/0", None, False),
    ],
)
def test_the_own_login_of_a_role(tmp_path: Path, redis_url: str, own: str | None, used: bool) -> None:
    if own is not None:
        (tmp_path / "redis.url").write_text(f"{own}\n")
    assert own_redis_url(redis_url, tmp_path) == (f"file://{tmp_path}/redis.url" if used else redis_url)


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("redis://user:pass@host:6379/0", "redis://host:6379/0"),
        ("redis+sentinel://u:p@ss@h1,h2/main/0?sentinel_password=p", "redis+sentinel://h1,h2/main/0"),
        ("unix:///run/redis.sock?password=p", "unix:///run/redis.sock"),
    ],
)
def test_what_is_shown_of_the_store_signs_nobody_in(url: str, seen: str) -> None:
    assert shown(MasterOptions(redis_url=url))["redis_url"] == seen


def test_values_of_the_sdb(files: Files, tmp_path: Path) -> None:
    """Values ``sdb://PROFILE/KEY`` are looked up at any depth and for any type; an unknown profile leaves them, as in Salt."""
    texts = {
        "secrets.yaml": "n: 7\nhost: db1\ndirs: [/a]\n",
        "minion": (
            f"mine: {{driver: yaml, files: [{tmp_path}/secrets.yaml]}}\n"
            "master_alive_interval: sdb://mine/n\nmysql.host: sdb://mine/host\nmodule_dirs: sdb://mine/dirs\n"
            "file_roots: {base: [sdb://mine/host]}\nid: sdb://none/x\nvault: {url: http://v}\n"
        ),
    }
    options = load_minion(files(texts), {})
    seen = as_opts(options)
    assert (options.master_alive_interval, options.module_dirs, options.id) == (7, ["/a"], "sdb://none/x")
    assert (seen["mysql.host"], seen["file_roots"], seen["vault"]) == ("db1", {"base": ["db1"]}, {"url": "http://v"})
    assert seen["mine"]["driver"] == "yaml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n: many\n", "minion: from the SDB: option 'master_alive_interval' must be a"),
        ("n: [", "minion: .*secrets.yaml: not valid YAML"),
        ("{}", "option 'master_alive_interval' must be a"),
    ],
)
def test_values_of_the_sdb_that_cannot_be_used(files: Files, tmp_path: Path, text: str, said: str) -> None:
    profile = f"mine: {{driver: yaml, files: [{tmp_path}/secrets.yaml]}}\n"
    place = files({"secrets.yaml": text, "minion": f"{profile}master_alive_interval: sdb://mine/n\n"})
    with pytest.raises(ConfigError, match=said):
        load_minion(place, {})
