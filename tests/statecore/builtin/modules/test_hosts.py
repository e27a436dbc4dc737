"""The hosts file of a mounted host."""

from __future__ import annotations

import pytest

TEXT = "127.0.0.1 localhost\n# a comment\n10.0.0.1 web www # two # names\n10.0.0.1 more\n\n10.0.0.2\tdb\n"


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [
        ("get_ip", ("www",), "10.0.0.1"),
        ("get_ip", ("none",), ""),
        ("get_alias", ("10.0.0.1",), ["web", "www", "more"]),
        ("get_alias", ("10.0.0.9",), []),
        ("has_pair", ("10.0.0.1", "more"), True),
        ("has_pair", ("10.0.0.1", ["web", "more"]), True),
        ("has_pair", ("10.0.0.1", ["web", "db"]), False),
        ("has_pair", ("10.0.0.9", "web"), False),
        (
            "list_hosts",
            (),
            {
                "127.0.0.1": {"aliases": ["localhost"]},
                "comment-0": ["# a comment"],
                "10.0.0.1": {"aliases": ["web", "www", "more"], "comment": "two # names"},
                "10.0.0.2": {"aliases": ["db"]},
            },
        ),
    ],
)
def test_reading(plain, name, args, value):
    (plain.root / "etc").mkdir()
    (plain.root / "etc/hosts").write_text(TEXT)
    assert plain.call(f"hosts.{name}", *args) == value


@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("add_host", ("10.0.0.2", "x"), "10.0.0.2\t\tdb x\n"),
        ("add_host", ("10.0.0.3", "x"), "10.0.0.2\t\tdb\n10.0.0.3\t\tx\n"),
        ("add_host", ("10.0.0.2", "db"), "10.0.0.2\tdb\n"),
        ("set_comment", ("10.0.0.2", "why"), "10.0.0.2\t\tdb\t\t# why\n"),
        ("set_host", ("10.0.0.2", "a b", "why"), "10.0.0.2\t\ta b\t\t# why\n"),
        ("set_host", ("10.0.0.2", " "), ""),
        ("rm_host", ("10.0.0.2", "db"), ""),
        ("rm_host", ("10.0.0.2", "x"), "10.0.0.2\tdb\n"),
    ],
)
def test_writing(plain, name, args, text):
    (plain.root / "etc").mkdir()
    (plain.root / "etc/hosts").write_text("10.0.0.2\tdb\n")
    assert plain.call(f"hosts.{name}", *args) is True
    assert (plain.root / "etc/hosts").read_text() == text


def test_bytes_that_are_no_text_stay(plain):
    (plain.root / "etc").mkdir()
    (plain.root / "etc/hosts").write_bytes(b"# caf\xe9\n10.0.0.2 db\n")
    plain.call("hosts.add_host", "10.0.0.2", "x")
    assert (plain.root / "etc/hosts").read_bytes() == b"# caf\xe9\n10.0.0.2\t\tdb x\n"


def test_a_link_out_of_the_host_leads_nowhere(plain, tmp_path):
    (plain.root / "etc").mkdir()
    outside = tmp_path / "outside"
    outside.write_text("10.0.0.9 secret\n")
    (plain.root / "etc/hosts").symlink_to(outside)
    assert plain.call("hosts.list_hosts") == {}
