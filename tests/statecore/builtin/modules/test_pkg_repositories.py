"""Repositories and their keys, by the functions of ``pkg``."""

from __future__ import annotations

import base64
import re

import pytest

from statecore.model.errors import CommandError, InvocationError

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
    assert plain.call("pkg.repo_changes", LINE, comments=["ours"])["line"]["new"] == f"{LINE} # ours"
    assert plain.call("pkg.get_repo", "deb https://v.test/debian/ bookworm main contrib")["dist"] == "bookworm"
    assert plain.call("pkg.get_repo", "deb https://v.test/debian trixie main") == {}
    assert "apt-get" not in " ".join(debian.calls)
    said = plain.call("pkg.del_repo", LINE)
    assert said == f"File /etc/apt/sources.list.d/v.list containing repo '{LINE}' has been removed."
    assert debian.calls[-1].endswith("update")
    with pytest.raises(CommandError, match="doesn't exist in the sources"):
        plain.call("pkg.del_repo", LINE)


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
        ({"keyid": "0A", "keyserver": "k.test"}, "not supported: key(id|server); name the key itself with key_url"),
        ({"architecture": "amd64"}, "'architecture' is no argument of a repository of APT: did you mean architectures"),
        ({"file": "v.list"}, "file must be a path below /etc/apt that ends with .list or .sources, not v.list"),
        ({"consolidate": True}, "not supported: consolidate"),
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


@pytest.mark.parametrize("argument", ["ppa", "ppa_auth", "copr", "keyid", "keyid_ppa"])
def test_what_is_not_removed(plain, debian, argument):
    entry = plain.state("pkgrepo.absent", name=LINE, **{argument: "x"})
    assert entry["result"] is False
    assert entry["comment"].startswith(f"not supported: {argument}; ")


def test_key_servers_are_named_in_the_refusal(plain, debian):
    with pytest.raises(InvocationError, match=r"https://keyserver\.ubuntu\.com"):
        plain.call("pkg.add_repo_key", keyserver="x", keyid="y")
    with pytest.raises(InvocationError, match="one of path and text"):
        plain.call("pkg.add_repo_key")
