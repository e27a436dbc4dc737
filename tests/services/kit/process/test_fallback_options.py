"""What is known of probes and logs where a configuration cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from saltern.kit.process.process import fallback_options

PROBES = "health_host: 0.0.0.0\nhealth_port: 8080  # of the pod\nconfig_error_pause: 60\nlog_format: 'json'\nlog_level: info\n"
KNOWN = ("0.0.0.0", 8080, 60, "json", "info")
NOTHING = ("127.0.0.1", 0, 0, "text", "warning")


def known(directory: Path, env: dict[str, str] | None = None) -> tuple[object, ...]:
    options = fallback_options("master", str(directory), env or {})
    return (options.health_host, options.health_port, options.config_error_pause, options.log_format, options.log_level)


@pytest.mark.parametrize(
    "more",
    ["", "file_roots: [\n", "\x00\n", "timeot: 5\n", "redis_url: {health_port: 1}\n", "nested:\n  health_port: 1\n"],
)
def test_lines_say_it_whatever_stands_around_them(more: str, tmp_path: Path) -> None:
    (tmp_path / "master").write_text(more + PROBES + more)
    assert known(tmp_path) == KNOWN


def test_a_file_is_read_beside_one_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "master.d" / "60-mine.conf").mkdir(parents=True)
    (tmp_path / "master.d" / "10-base.conf").write_bytes(PROBES.encode() + b"id: \xff\n")
    assert known(tmp_path) == KNOWN


def test_the_later_one_wins_and_variables_at_last(tmp_path: Path) -> None:
    (tmp_path / "master.d").mkdir()
    (tmp_path / "master").write_text(PROBES)
    (tmp_path / "master.d" / "50-x.conf").write_text("health_port: 81\nlog_format: text\n")
    assert known(tmp_path, {"SALTERN_LOG_FORMAT": "json", "SALTERN_TIMEOUT": "soon"}) == (
        "0.0.0.0",
        81,
        60,
        "json",
        "info",
    )


@pytest.mark.parametrize(
    "text", ["health_port: many\nhealth_host: [a]\nlog_level: loud\n", "health_port: -1\n", "- a\n", ""]
)
def test_what_is_wrong_itself_is_as_if_it_were_not_there(text: str, tmp_path: Path) -> None:
    (tmp_path / "master").write_text(text)
    assert known(tmp_path) == NOTHING


def test_no_directory_says_nothing(tmp_path: Path) -> None:
    assert known(tmp_path / "none") == NOTHING


def test_a_directory_that_cannot_be_looked_into_says_nothing(tmp_path: Path) -> None:
    assert known(tmp_path / ("x" * 300)) == NOTHING
