"""The id of a minion whose configuration names none."""

from __future__ import annotations

from pathlib import Path

import pytest

from saltern.kit.config.master import ConfigError
from saltern.kit.config.minion_id import first_name
from saltern.kit.config.minion_options import load_minion


@pytest.fixture(autouse=True)
def _host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getfqdn", lambda name: "Web1.Example.org")


def _id(directory: Path, text: str, *, keep: bool = False) -> str:
    (directory / "minion").write_text(text)
    return load_minion(str(directory), {}, keep_found_id=keep).id


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{}", "Web1.Example.org"),
        ("minion_id_lowercase: true", "web1.example.org"),
        ("minion_id_remove_domain: true", "Web1"),
        ("minion_id_remove_domain: example.ORG", "Web1"),
        ("minion_id_remove_domain: other", "Web1.Example.org"),
        ("append_domain: Example.org", "Web1.Example.org"),
        ("{id: db1, append_domain: example.org}", "db1.example.org"),
        ("{id: db1., append_domain: example.org}", "db1."),
        ("id_function: {test.echo: {text: Named}}", "Named"),
        ("{id_function: {test.echo: {text: Named}}, minion_id_lowercase: true}", "named"),
        ("{id: db1, id_function: test.nothing}", "db1"),
    ],
)
def test_found(tmp_path: Path, text: str, found: str) -> None:
    assert _id(tmp_path, text) == found


def test_a_kept_id_goes_before_the_hosts_name(tmp_path: Path) -> None:
    (tmp_path / "minion_id").write_text("old.example.org\n")
    assert _id(tmp_path, "{}") == "old.example.org"
    assert _id(tmp_path, "minion_id_caching: false") == "Web1.Example.org"
    assert _id(tmp_path, "id: new") == "new"


def test_a_found_id_is_kept_by_the_minion_alone(tmp_path: Path) -> None:
    _id(tmp_path, "{}")
    _id(tmp_path, "minion_id_caching: false", keep=True)
    assert not (tmp_path / "minion_id").exists()
    _id(tmp_path, "{}", keep=True)
    assert (tmp_path / "minion_id").read_text() == "Web1.Example.org"


@pytest.mark.parametrize(("function", "says"), [("no.such", "no.such"), ("test.true", "returned True instead")])
def test_a_function_that_gives_no_id(tmp_path: Path, function: str, says: str) -> None:
    with pytest.raises(ConfigError, match=f"id_function: .*{says}"):
        _id(tmp_path, f"id_function: {function}")


def test_names_that_every_machine_has_are_passed_over() -> None:
    assert first_name(["", "localhost.localdomain", "ip6-loopback", "127.0.1.1", "web1"]) == "web1"
    assert first_name(["localhost"]) == "localhost"


def test_directories_that_get_the_id(tmp_path: Path) -> None:
    (tmp_path / "minion").write_text("{id: web1, cachedir: /c, append_minionid_config_dirs: [pki_dir, cachedir]}")
    options = load_minion(str(tmp_path), {})
    assert (options.cachedir, options.pki_dir) == ("/c/web1", "/etc/salt/pki/minion/web1")
