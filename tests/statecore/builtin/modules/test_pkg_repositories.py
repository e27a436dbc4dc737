"""Repositories and their keys, by the functions of ``pkg``."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator

import pytest

from statecore.builtin.modules.pkg_apt import keyservers
from statecore.model.errors import CommandError, InvocationError
from statecore.system.hostfiles import openpgp_keys
from tests.statecore.loopback_server import Web, serve

KEY = bytes([0x99]) + b"a key, as far as its first byte tells"
ARMOURED = (
    f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{base64.b64encode(KEY).decode()}\n-----END PGP PUBLIC KEY BLOCK-----\n"
)
LINE = "deb [signed-by=/etc/apt/keyrings/v.gpg] https://v.test/debian bookworm main"


def test_sources_of_a_debian(plain, debian):
    assert plain.call("pkg.list_repos") == {}
    made = plain.call("pkg.mod_repo", LINE, file="/etc/apt/sources.list.d/v.list", comments=["theirs"], refresh=False)
    assert made[LINE]["line"] == f"{LINE} # theirs"
    assert plain.call("pkg.list_repos")["https://v.test/debian"] == [
        {
            "file": "/etc/apt/sources.list.d/v.list",
            "comps": ["main"],
            "disabled": False,
            "enabled": True,
            "dist": "bookworm",
            "suites": ["bookworm"],
            "type": "deb",
            "types": ["deb"],
            "uri": "https://v.test/debian",
            "uris": ["https://v.test/debian"],
            "line": f"{LINE} # theirs",
            "architectures": [],
            "signedby": "/etc/apt/keyrings/v.gpg",
        }
    ]
    assert plain.call("pkg._repo_changes", LINE, comments=["ours"])["line"]["new"] == f"{LINE} # ours"
    assert plain.call("pkg.get_repo", "deb https://v.test/debian/ bookworm main contrib")["dist"] == "bookworm"
    assert plain.call("pkg.get_repo", "deb https://v.test/debian trixie main") == {}
    assert "apt-get" not in " ".join(debian.calls)
    said = plain.call("pkg.del_repo", LINE)
    assert said == f"File /etc/apt/sources.list.d/v.list containing repo '{LINE}' has been removed."
    assert debian.calls[-1].endswith("update")
    with pytest.raises(CommandError, match="doesn't exist in the sources"):
        plain.call("pkg.del_repo", LINE)


def test_stanzas_of_one_file_are_told_apart(plain, debian):
    parts = debian.root / "etc/apt/sources.list.d"
    parts.mkdir(parents=True)
    (parts / "z.list").write_text("deb http://d.test/debian backports main\n")
    (parts / "d.sources").write_text(
        "Types: deb\nURIs: http://d.test/debian\nSuites: stable updates\nComponents: main\n\n"
        "Types: deb\nURIs: http://d.test/security\nSuites: stable-security\nComponents: main\n"
    )
    found = plain.call("pkg.list_repos")
    told = {uri: [(each["dist"], each["suites"], each["uris"]) for each in listed] for uri, listed in found.items()}
    assert told == {
        "http://d.test/debian": [
            ("backports", ["backports"], ["http://d.test/debian"]),
            ("stable", ["stable", "updates"], ["http://d.test/debian"]),
            ("updates", ["stable", "updates"], ["http://d.test/debian"]),
        ],
        "http://d.test/security": [("stable-security", ["stable-security"], ["http://d.test/security"])],
    }


@pytest.mark.parametrize("place", ["salt://v.asc", "/opt/v.asc", "file:///opt/v.asc"])
def test_keys_are_kept_where_the_line_says(plain, debian, place):
    plain.write("v.asc", ARMOURED)
    (debian.root / "opt").mkdir()
    (debian.root / "opt/v.asc").write_text(ARMOURED)
    entry = plain.state("pkgrepo.managed", name=LINE, key_url=place, test=True)
    assert (entry["result"], entry["changes"]) == (None, {"repo": LINE})
    assert not (debian.root / "etc/apt").exists()
    assert plain.state("pkgrepo.managed", name=LINE, key_url=place)["changes"] == {"repo": LINE}
    key = debian.root / "etc/apt/keyrings/v.gpg"
    assert (key.read_bytes(), key.stat().st_mode & 0o777) == (KEY, 0o644)
    assert plain.state("pkgrepo.managed", name=LINE, key_url=place)["changes"] == {}
    key.unlink()
    assert plain.state("pkgrepo.managed", name=LINE, key_url=place)["changes"] == {
        "key": {"old": "", "new": "/etc/apt/keyrings/v.gpg"}
    }
    assert key.read_bytes() == KEY


def test_keys_that_are_trusted_for_all(plain, debian):
    plain.write("v.key", ARMOURED)
    line = "deb https://v.test/debian bookworm main"
    plain.state("pkgrepo.managed", name=line, key_url="salt://v.key")
    assert (debian.root / "etc/apt/trusted.gpg.d/v.asc").read_text() == ARMOURED
    plain.state("pkgrepo.managed", name="deb https://w.test/debian bookworm main", key_text=ARMOURED)
    assert (debian.root / "etc/apt/trusted.gpg.d/w.test.asc").read_text() == ARMOURED
    assert plain.call("pkg.add_repo_key", text=ARMOURED, aptkey=False, keyfile="x.gpg") is True
    assert (debian.root / "etc/apt/keyrings/x.gpg").read_bytes() == KEY


@pytest.mark.parametrize(
    ("arguments", "comment"),
    [
        ({"key_url": "salt://none"}, "Error: file not found: salt://none"),
        ({"key_url": "salt://page"}, "failed to add key from salt://page: it holds no public key"),
        ({"key_url": "http://v.test/key", "allow_insecure_key": False}, "Cannot have 'key_url' using http"),
        ({"key_url": "salt://page", "key_text": "x"}, 'You may not use both "key_url" and "key_text"'),
        ({"key_url": "salt://page", "keyid": "0A"}, 'You may not use both "keyid"/"keyserver" and "key_url"'),
        ({"key_text": "x", "keyserver": "k.test"}, 'You may not use both "keyid"/"keyserver" and "key_text"'),
        ({"keyid": "0A", "keyserver": "k.test"}, "keyid: '0A' is not the ID of an OpenPGP key"),
        ({"keyid": "0123ABCD"}, "both keyserver and keyid options required."),
        ({"keyid": "0123ABCD", "keyserver": "ldap://k.test"}, "keyserver: ldap://k.test is neither a host nor a URL"),
        ({"ppa": "someone/tools"}, 'cannot parse "ppa:" style repo definitions: someone/tools on Debian'),
        ({"file": "v.list"}, "file must be a path below /etc/apt that ends with .list or .sources, not v.list"),
    ],
)
def test_what_is_not_done(plain, debian, arguments, comment):
    plain.write("page", "<html>")
    for test in (True, False):
        entry = plain.state("pkgrepo.managed", name=LINE, test=test, **arguments)
        assert (entry["result"], entry["changes"]) == (False, {})
        assert re.search(comment, entry["comment"]), entry["comment"]
    assert not (debian.root / "etc/apt").exists()


def test_binary_keys_are_not_named_as_if_they_were_armoured(plain, debian):
    (plain.root / "opt").mkdir()
    (plain.root / "opt/k").write_bytes(KEY)
    line = LINE.replace("v.gpg", "v.asc")
    assert "it is binary; name its file .gpg" in plain.state("pkgrepo.managed", name=line, key_url="/opt/k")["comment"]


def test_hosts_without_repositories(plain, debian):
    debian.absent.add("apt-get")
    with pytest.raises(Exception, match="Repo management not implemented on this platform"):
        plain.state("pkgrepo.managed", name=LINE)


def test_what_is_not_removed(plain, debian):
    entry = plain.state("pkgrepo.absent", name=LINE, copr="x")
    assert (entry["result"], entry["comment"][:19]) == (False, "not supported: copr")


def test_wrong_calls_of_add_repo_key(plain, debian):
    with pytest.raises(InvocationError, match="both keyserver and keyid options required"):
        plain.call("pkg.add_repo_key", keyserver="x")
    with pytest.raises(InvocationError, match="one of path, text and keyid is needed"):
        plain.call("pkg.add_repo_key")


def test_arguments_that_no_repository_has_are_ignored(plain, debian):
    entry = plain.state("pkgrepo.managed", name=LINE, architecture="amd64", test=True)
    assert (entry["result"], entry["changes"]) == (None, {"repo": LINE})
    assert entry["warnings"] == ["'architecture' is not an argument of pkgrepo.managed with APT and is ignored"]
    plain.opts["state_unknown_arguments"] = "error"
    assert plain.state("pkgrepo.managed", name=LINE, architecture="amd64")["result"] is False


# ------------------------------------------------------------------------------------------------ key servers and archives

#: A key made for this test, and its fingerprint.
REAL = """-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawOwQhYJKwYBBAHaRw8BAQdAAbzgfXFNsXc2h1nb4kHX6dsb3v2fTozYmQbf
0oT7QZ20F3NpZ25lciA8c0BleGFtcGxlLnRlc3Q+iJAEExYIADgWIQQN58VTSjy0
qfOcDGwe4FUTEGU79QUCawOwQgIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAK
CRAe4FUTEGU79Y+ZAQCpYRvnzHLNbN2OOa1NPA/WSUdeDykt9fqlOfP3k+KBpQEA
mE7yZ26PzxM/phU5VwYj2SVVP5BKkyTwkgJzYl0WHAA=
=dPJI
-----END PGP PUBLIC KEY BLOCK-----
"""
FINGERPRINT = "0DE7C5534A3CB4A9F39C0C6C1EE0551310653BF5"


@pytest.fixture
def server() -> Iterator[Web]:
    with serve() as web:
        web.answers["/pks/lookup"] = (200, {}, REAL.encode())
        yield web


def test_fingerprints():
    binary = openpgp_keys.dearmoured(REAL.encode())
    assert openpgp_keys.fingerprints(binary) == [FINGERPRINT]
    assert openpgp_keys.dearmoured(openpgp_keys.armoured(binary)) == binary
    with pytest.raises(ValueError, match="cut short"):
        openpgp_keys.fingerprints(binary[:-3])


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("keyserver.ubuntu.com", "http://keyserver.ubuntu.com:11371/pks/lookup"),
        ("hkp://keyserver.ubuntu.com:80", "http://keyserver.ubuntu.com:80/pks/lookup"),
        ("hkps://keys.openpgp.org", "https://keys.openpgp.org/pks/lookup"),
        ("https://keys.test/", "https://keys.test/pks/lookup"),
    ],
)
def test_addresses_of_key_servers(address, url):
    assert keyservers.lookup_url(address, "0123ABCD") == f"{url}?op=get&options=mr&search=0x0123ABCD"


@pytest.mark.parametrize(
    ("line", "key_id", "file"),
    [
        ("deb https://v.test/debian bookworm main", FINGERPRINT, f"etc/apt/trusted.gpg.d/{FINGERPRINT}.gpg"),
        (
            "deb https://v.test/debian bookworm main",
            f"0x{FINGERPRINT[-16:].lower()}",
            f"etc/apt/trusted.gpg.d/{FINGERPRINT[-16:]}.gpg",
        ),
        ("deb https://v.test/debian bookworm main", 0x10653BF5, "etc/apt/trusted.gpg.d/10653BF5.gpg"),
        (LINE, FINGERPRINT, "etc/apt/keyrings/v.gpg"),
        (LINE.replace("v.gpg", "v.asc"), FINGERPRINT, "etc/apt/keyrings/v.asc"),
    ],
)
def test_keys_of_key_servers(plain, debian, server, line, key_id, file):
    arguments = {"name": line, "keyid": key_id, "keyserver": server.url}
    assert plain.state("pkgrepo.managed", test=True, **arguments)["changes"] == {"repo": line}
    assert server.asked == []
    entry = plain.state("pkgrepo.managed", **arguments)
    assert (entry["result"], entry["changes"]) == (True, {"repo": line}), entry["comment"]
    kept = (debian.root / file).read_bytes()
    assert openpgp_keys.fingerprints(openpgp_keys.dearmoured(kept)) == [FINGERPRINT]
    assert openpgp_keys.is_armoured(kept) == file.endswith(".asc")
    assert plain.state("pkgrepo.managed", **arguments)["changes"] == {}
    assert len(server.asked) == 1


def test_a_key_that_the_host_trusts_is_not_fetched(plain, debian, server):
    (debian.root / "etc/apt/trusted.gpg.d").mkdir(parents=True)
    (debian.root / "etc/apt/trusted.gpg.d/other.asc").write_text(REAL)
    (debian.root / "etc/apt/trusted.gpg.d/box.gpg").write_bytes(b"\0\0\0\x20\1\1\0\2KBXf")
    line = "deb https://v.test/debian bookworm main"
    arguments = {"name": line, "keyid": FINGERPRINT[-16:], "keyserver": server.url}
    assert plain.state("pkgrepo.managed", **arguments)["result"] is True
    (debian.root / f"etc/apt/trusted.gpg.d/{FINGERPRINT[-16:]}.gpg").unlink(missing_ok=True)
    assert plain.state("pkgrepo.managed", **arguments)["changes"] == {}


@pytest.mark.parametrize(
    ("answer", "key_id", "says"),
    [
        ((200, {}, REAL.encode()), "0123456789ABCDEF", f"the server sent another key: {FINGERPRINT}"),
        ((200, {}, b"<html>"), FINGERPRINT, "it holds no public key"),
        ((404, {}, b""), FINGERPRINT, f"Error: key retrieval failed: {FINGERPRINT}"),
    ],
)
def test_key_servers_that_fail(plain, debian, server, answer, key_id, says):
    server.answers["/pks/lookup"] = answer
    entry = plain.state("pkgrepo.managed", name=LINE, keyid=key_id, keyserver=server.url)
    assert (entry["result"], entry["changes"]) == (False, {})
    assert says in entry["comment"]
    assert not (debian.root / "etc/apt/sources.list").exists()


def test_an_archive_of_launchpad(plain, debian, server, monkeypatch):
    plain.grains |= {"os": "Ubuntu", "oscodename": "noble"}
    monkeypatch.setattr(keyservers, "_LAUNCHPAD", server.url)
    monkeypatch.setattr(keyservers, "UBUNTU", server.url)
    told = json.dumps({"signing_key_fingerprint": FINGERPRINT}).encode()
    server.answers["/~some-one/+archive/ubuntu/tools"] = (200, {}, told)
    line = "deb https://ppa.launchpadcontent.net/some-one/tools/ubuntu noble main"
    for arguments in ({"name": "tools", "ppa": "some-one/tools"}, {"name": "ppa:some-one/tools"}):
        entry = plain.state("pkgrepo.managed", **arguments)
        assert entry["result"] is True, entry["comment"]
    file = debian.root / "etc/apt/sources.list.d/some-one-ubuntu-tools-noble.list"
    assert file.read_text() == f"{line}\n"
    assert (debian.root / "etc/apt/trusted.gpg.d/some-one-ubuntu-tools.gpg").is_file()
    assert plain.state("pkgrepo.managed", name="tools", ppa="some-one/tools")["changes"] == {}
    old = line.replace("https://ppa.launchpadcontent.net", "http://ppa.launchpad.net")
    file.write_text(f"{old}\n")
    assert plain.state("pkgrepo.managed", name="tools", ppa="some-one/tools")["changes"] == {}
    entry = plain.state("pkgrepo.absent", name="tools", ppa="some-one/tools", keyid_ppa=True)
    assert (entry["result"], entry["changes"]) == (True, {"repo": "ppa:some-one/tools", "keyid": FINGERPRINT})
    assert not file.exists()
    assert list((debian.root / "etc/apt/trusted.gpg.d").iterdir()) == []
    entry = plain.state("pkgrepo.absent", name="tools", ppa="some-one/tools", keyid_ppa=True)
    assert (entry["result"], entry["changes"]) == (True, {})


def test_a_private_archive_of_launchpad(plain, debian, server):
    plain.grains |= {"os": "Ubuntu", "oscodename": "noble"}
    arguments = {"name": "x", "ppa": "someone/tools", "ppa_auth": "me:secret"}
    assert "Private PPAs require a keyid" in plain.state("pkgrepo.managed", **arguments)["comment"]
    entry = plain.state("pkgrepo.managed", **arguments, keyid=FINGERPRINT, keyserver=server.url)
    assert entry["result"] is True, entry["comment"]
    (file,) = (debian.root / "etc/apt/sources.list.d").iterdir()
    assert file.read_text().startswith(
        "deb https://me:secret@private-ppa.launchpadcontent.net/someone/tools/ubuntu noble main"
    )


def test_consolidate(plain, debian):
    parts = debian.root / "etc/apt/sources.list.d"
    parts.mkdir(parents=True)
    (debian.root / "etc/apt/sources.list").write_text("# mine\ndeb https://a.test/d bookworm main\n")
    (parts / "a.list").write_text("deb https://a.test/d bookworm contrib main\n")
    (parts / "b.sources").write_text(
        "Types: deb\nURIs: https://b.test/d\nSuites: bookworm\nComponents: main\nSigned-By: /k.gpg\n"
    )
    name = "deb https://c.test/d bookworm main"
    assert plain.state("pkgrepo.managed", name=name, consolidate=True)["changes"] == {"repo": name}
    assert (debian.root / "etc/apt/sources.list").read_text() == (
        f"deb https://a.test/d bookworm main contrib\ndeb [signed-by=/k.gpg] https://b.test/d bookworm main\n{name}\n"
    )
    assert list(parts.iterdir()) == []
    assert plain.state("pkgrepo.managed", name=name, consolidate=True)["changes"] == {}
