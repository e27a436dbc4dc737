"""Keys of a mounted host, and the hosts that it knows."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from statecore.model.errors import CommandError
from statecore.system.hostfiles import ssh_keys

RSA = "AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7"


@pytest.fixture
def host(plain):
    (plain.root / "etc/ssh").mkdir(parents=True)
    (plain.root / "etc/passwd").write_text("web:x:33:33::/home/web:/bin/sh\n")
    (plain.root / "home/web/.ssh").mkdir(parents=True)
    (plain.root / "home/web/.ssh/authorized_keys").write_text(f"no-pty,a ssh-rsa {RSA} ann at one\nbroken\n")
    (plain.root / "home/web/.ssh/id_rsa.pub").write_text("pub\n")
    for name, text in {"ssh_host_rsa_key": "private\n", "ssh_host_rsa_key.pub": "public\n", "moduli": "1\n"}.items():
        (plain.root / "etc/ssh" / name).write_text(text)
    return plain


def test_keys(host):
    key = {"enc": "ssh-rsa", "comment": "ann at one", "options": ["no-pty", "a"]}
    found = host.call("ssh.auth_keys", "web", fingerprint_hash_type="md5")
    assert found == {RSA: {**key, "fingerprint": ssh_keys.fingerprint(RSA, "md5")}}
    assert list(host.call("ssh.auth_keys", ["web", "nobody"])) == ["web"]
    assert host.call("ssh.user_keys", "web") == {"web": {"id_rsa.pub": "pub"}}
    assert host.call("ssh.host_keys") == {"rsa": "private", "rsa.pub": "public"}
    assert host.call("ssh.host_keys", private=False) == {"rsa.pub": "public"}


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("set_auth_key", ("web", RSA, "none"), "Incorrect encryption key type 'none'"),
        ("set_auth_key", ("web", RSA, "rsa", "", None, ".ssh/%x"), 'unknown token character "%x"'),
        ("rm_auth_key_from_file", ("web", "salt://nothing"), "Failed to pull key file"),
        ("get_known_host_entries", ("nobody", "x"), "User nobody does not exist"),
        ("auth_keys", ("web", ".ssh/authorized_keys", "md99"), "md99 is not supported"),
    ],
)
def test_errors(host, name, args, words):
    with pytest.raises(CommandError, match=words):
        host.call(f"ssh.{name}", *args)


def test_hashed_names_are_found_and_forgotten(host):
    known = host.root / "home/web/.ssh/known_hosts"
    known.write_text("a,b ssh-rsa AAAA\n*.wild ssh-rsa BBBB\n# note\n")
    assert host.call("ssh.hash_known_hosts", "web")["status"] == "updated"
    assert known.read_text().count("|1|") == 2
    assert "*.wild" in known.read_text()
    for name, key in {"a": "AAAA", "B": "AAAA", "x.wild": "BBBB"}.items():
        assert [each["key"] for each in host.call("ssh.get_known_host_entries", "web", name)] == [key]
    host.call("ssh.rm_known_host", "web", "a")
    assert host.call("ssh.get_known_host_entries", "web", "a") is None
    assert host.call("ssh.check_known_host", "web", "b", key="AAAA") == "exists"
    assert known.with_name("known_hosts.old").read_text().count("|1|") == 2


def test_names_are_found_as_ssh_keygen_finds_them(tmp_path):
    if not Path("/usr/bin/ssh-keygen").exists():
        pytest.skip("this machine has no ssh-keygen")
    file = tmp_path / "known"
    file.write_text(
        "a,*.b.c ssh-rsa AAAA\n!x.d,?.d ssh-rsa BBBB\n[p]:2222 ssh-rsa CCCC\n" + ssh_keys.hashed("h ssh-rsa DDDD\n")
    )
    for name in ("a", "A", "x.b.c", "b.c", "x.d", "y.d", "[p]:2222", "p", "h", "none"):
        told = subprocess.run(["ssh-keygen", "-F", name, "-f", file], capture_output=True, text=True).stdout
        keys = [line.split()[-1] for line in told.splitlines() if not line.startswith("#")]
        assert [words[2] for _, words in ssh_keys.known(file.read_text(), name)] == keys, name
