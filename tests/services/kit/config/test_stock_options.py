"""A stock configuration starts: every option of Salt is honoured, without effect, or refused for a value that would be missed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from saltern.kit.config import stock_options
from saltern.kit.config.master import ConfigError, MasterOptions, StateOptions, load_master
from saltern.kit.config.minion_options import MinionOptions, load_minion
from saltern.kit.config.reading import notes_of
from tests.conftest import Oracle

STOCK = yaml.safe_load(Path(__file__).with_name("stock_values.yaml").read_text("utf-8"))

#: Options of the sample files that are refused with their documented value.
REFUSED = {"master": {"ssl", "key_pass", "signing_key_pass", "cluster_id"}, "minion": {"ssl"}}

#: Keys of the sample files that are a user's own.
OWN = {"master": {"masterkeyring"}, "minion": {"test.foo", "test.bar", "test.baz"}}

Load: TypeAlias = Callable[..., StateOptions]


def _load(kind: str, directory: Path, values: Mapping[str, object]) -> StateOptions:
    (directory / kind).write_text(yaml.safe_dump({"id": "web1", **values}))
    load: Load = load_master if kind == "master" else load_minion
    return load(str(directory), {})


@pytest.mark.parametrize("kind", ["master", "minion"])
def test_each_option_of_the_sample_file_alone(kind: str, tmp_path: Path) -> None:
    refused, own = set(), set()
    for entry in STOCK[kind]:
        ((name, _),) = entry.items()
        try:
            options = _load(kind, tmp_path, entry)
        except ConfigError:
            refused.add(name)
            continue
        if name in options.module_settings and not any("no effect" in note for note in notes_of(options)):
            own.add(name)
    assert refused == REFUSED[kind]
    assert {name for name in own if "." not in name or name in OWN[kind]} == OWN[kind]


@pytest.mark.parametrize("kind", ["master", "minion"])
def test_the_whole_sample_file(kind: str, tmp_path: Path) -> None:
    values = {name: value for entry in STOCK[kind] for name, value in entry.items() if name not in REFUSED[kind]}
    values.pop("include", None)
    options = _load(kind, tmp_path, values)
    without_effect = [note for note in notes_of(options) if "no effect" in note]
    assert len(without_effect) == 1
    assert "pidfile" in without_effect[0]


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["master", "minion"])
def test_every_option_of_salt_is_known(kind: str, oracle: Oracle) -> None:
    code = (
        "import json, salt.config as c; "
        f"print(json.dumps(dict(c.DEFAULT_{kind.upper()}_OPTS), default=lambda value: None))"
    )
    defaults = json.loads(oracle.run("python", "-c", code))
    options: type[Any] = MasterOptions if kind == "master" else MinionOptions
    ours = {item.name for item in dataclasses.fields(options)} | {"return", "keep_jobs"}
    treated = {
        name: stock_options.treatment(name, value, minion=kind == "minion")
        for name, value in defaults.items()
        if name not in ours
    }
    assert {name for name, treatment in treated.items() if treatment is None} == set()
    assert {name for name, treatment in treated.items() if treatment and treatment.refused} == set()


@pytest.mark.parametrize(
    ("kind", "text", "name", "value"),
    [
        ("minion", "master_port: '4506'", "master_port", 4506),
        ("master", "timeout: 5.5", "timeout", 5),
        ("master", "file_roots: {base: /srv/salt}", "file_roots", {"base": ["/srv/salt"]}),
        ("master", "fileserver_backend: git", "fileserver_backend", ["git"]),
        ("minion", "utils_dirs: /x", "utils_dirs", ["/x"]),
        ("minion", "disable_modules: a, b", "disable_modules", ["a", "b"]),
        ("master", "auto_accept: 'True'", "auto_accept", True),
        ("master", "auto_accept: 0", "auto_accept", False),
        ("minion", "id: 12", "id", "12"),
        ("minion", "nodegroups: {1: x}", "nodegroups", {"1": "x"}),
        ("minion", "beacons: [{load: []}, {disk: []}]", "beacons", {"load": [], "disk": []}),
    ],
)
def test_values_are_read_as_salt_reads_them(kind: str, text: str, name: str, value: object, tmp_path: Path) -> None:
    (tmp_path / kind).write_text(text)
    load: Load = load_master if kind == "master" else load_minion
    options = load(str(tmp_path), {})
    assert getattr(options, name) == value
    (note,) = notes_of(options)
    assert f"{kind}, line 1: option '{name}' is read as {value!r}, not " in note


@pytest.mark.parametrize("text", ["http_request_timeout: 60", "proxy_host:", "proxy_port:", "master_port:"])
def test_values_that_are_nothing_to_note(text: str, tmp_path: Path) -> None:
    (tmp_path / "minion").write_text(f"id: web1\n{text}\n")
    assert notes_of(load_minion(str(tmp_path), {})) == []


def test_a_users_own_keys_are_found_by_modules_and_a_near_miss_is_noted(tmp_path: Path) -> None:
    (tmp_path / "minion").write_text("id: web1\nmycompany: {unit: x}\nmastr: a\nvault: {url: https://x}\n1: 2\n")
    options = load_minion(str(tmp_path), {})
    assert options.module_settings["mycompany"] == {"unit": "x"}
    assert options.module_settings["vault"] == {"url": "https://x"}
    (note,) = notes_of(options)
    assert (
        note
        == f"{tmp_path}/minion, line 3: 'mastr' is no option, and so a key of your own; the option is called 'master'"
    )


def test_all_errors_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "minion").write_text("id: web1\nmaster_port: many\nssl: true\nauth_tries: [1]\n")
    with pytest.raises(ConfigError) as caught:
        load_minion(str(tmp_path), {})
    assert [line.partition("minion, ")[2].partition(":")[0] for line in str(caught.value).splitlines()] == [
        "line 2",
        "line 3",
        "line 4",
    ]


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("minion", "transport: tcp", "option 'transport' is not supported: minions and master speak ZeroMQ alone"),
        ("minion", "fips_mode: true", "option 'fips_mode' is not supported: name the algorithms"),
        ("minion", "verify_master_pubkey_sign: true", "name the fingerprint of the master's key in master_finger"),
        ("master", "order_masters: true", "there are no syndics here"),
        ("master", "keep_jobs: long", "option 'keep_jobs' must be a number of hours, not 'long'"),
    ],
)
def test_what_would_be_missed_is_refused(kind: str, text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / kind).write_text(f"{text}\n")
    load: Load = load_master if kind == "master" else load_minion
    with pytest.raises(ConfigError, match=says):
        load(str(tmp_path), {})


def test_hours_of_the_job_cache_become_seconds(tmp_path: Path) -> None:
    (tmp_path / "master").write_text("keep_jobs: 12\n")
    assert load_master(str(tmp_path), {}).keep_jobs_seconds == 12 * 3600


def test_root_dir_is_in_front_of_paths(tmp_path: Path) -> None:
    (tmp_path / "minion").write_text(
        "id: web1\nroot_dir: /opt/salt\npki_dir: /opt/salt/pki\nlog_file: /var/log/minion\n"
    )
    options = load_minion(str(tmp_path), {})
    assert (options.pki_dir, options.cachedir) == ("/opt/salt/pki", "/opt/salt/var/cache/salt/minion")
    assert (options.log_file, options.extension_modules) == ("/opt/salt/var/log/minion", "")


def test_files_that_are_included(tmp_path: Path) -> None:
    for name, text in {
        "master": "default_include: own.d/*.conf\ninclude: [more/*, missing/*]\ntimeout: 1\ngather_job_timeout: 1\n",
        "own.d/a.conf": "timeout: 2\nkeep_jobs_seconds: 2\n",
        "more/b": "timeout: 3\ninclude: deep/c\n",
        "more/deep/c": "job_cache_bytes: 4\n",
        "master.d/no.conf": "timeout: 9\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    options = load_master(str(tmp_path), {})
    assert (options.timeout, options.keep_jobs_seconds, options.gather_job_timeout, options.job_cache_bytes) == (
        3,
        2,
        1,
        4,
    )


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("master", "batch_safe_limit: 100\nbatch_safe_size: 10%", {"batch_safe_limit": 100, "batch_safe_size": "10%"}),
        ("master", "keysize: 4096\npillar_opts: true", {"keysize": 4096, "pillar_opts": True}),
        (
            "minion",
            "enable_zip_modules: true\ncython_enable: true",
            {"enable_zip_modules": True, "cython_enable": True},
        ),
        ("master", "enable_zip_modules: true", {"enable_zip_modules": True}),
        (
            "minion",
            "source_interface_name: bond0.1234\nsource_ret_port: 49017\nsource_publish_port: 49018",
            {"source_interface_name": "bond0.1234", "source_ret_port": 49017, "source_publish_port": 49018},
        ),
    ],
)
def test_options_that_have_an_effect(kind: str, text: str, expected: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / kind).write_text(f"id: web1\n{text}\n")
    load: Load = load_master if kind == "master" else load_minion
    options = load(str(tmp_path), {})
    assert {name: getattr(options, name) for name in expected} == expected
    assert notes_of(options) == []
