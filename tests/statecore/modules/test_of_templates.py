"""network, status, disk, hashutil, random: what templates ask; beside real Salt where it answers the same."""

from __future__ import annotations

import json
import os

import pytest

from statecore.errors import CommandError, InvocationError
from statecore.host import Host

CALLS = [
    ("hashutil.digest", ("get salted",), "md5"),
    ("hashutil.digest", ("get salted", "sha512"), ""),
    ("hashutil.md5_digest", ("a",), ""),
    ("hashutil.sha256_digest", ("ü",), ""),
    ("hashutil.sha512_digest", ("a",), ""),
    ("hashutil.base64_b64encode", ("get salted",), ""),
    ("hashutil.base64_b64decode", ("Z2V0IHNhbHRlZA==",), ""),
    ("hashutil.base64_encodestring", ("get salted" * 20,), ""),
    ("hashutil.base64_decodestring", ("Z2V0IHNhbHRlZA==\n",), ""),
    ("hashutil.hmac_signature", ("get salted", "shared secret", "eBWf9bstXg+NiP5AOwppB5HMvZiYMPzEM9W5YMm/AmQ="), ""),
    ("hashutil.hmac_compute", ("get salted", "shared secret"), ""),
    ("hashutil.github_signature", ("x", "y", "sha1=00"), ""),
    ("random.hash", ("I am a string", "md5"), ""),
    ("random.str_encode", ("I am a new string",), ""),
    ("random.rand_int", (1, 100, "seed"), ""),
    ("random.seed", (60, "web1"), ""),
    ("random.sample", (["a", "b", "c", "d"], 2, "x"), ""),
    ("random.shuffle", (["a", "b", "c", "d"], "x"), ""),
    ("network.is_loopback", ("127.0.0.1",), ""),
    ("network.is_private", ("10.0.0.1",), ""),
    ("network.reverse_ip", ("127.0.0.1",), ""),
    ("network.calc_net", ("172.17.0.5", "255.255.255.240"), ""),
    ("network.ip_addrs", (), ""),
    ("network.ip_addrs", (None, True), ""),
    ("network.subnets", (), ""),
    ("network.in_subnet", ("127.0.0.0/8",), ""),
    ("network.get_hostname", (), ""),
    ("network.hw_addr", ("lo",), ""),
    ("network.interface_ip", ("lo",), ""),
    ("disk.usage", (), "names"),
    ("disk.inodeusage", (), "names"),
    ("status.meminfo", (), "names"),
    ("status.cpuinfo", (), "names"),
    ("status.loadavg", (), "names"),
]

_ASK = """
import json, sys, salt.config, salt.loader
opts = salt.config.minion_config(None)
opts.update(id="web1", file_client="local", cachedir=sys.argv[1], grains={"id": "web1", "kernel": "Linux", "os": "Debian"})
functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts))
json.dump([functions[name](*args) for name, args in json.load(sys.stdin)], sys.stdout)
"""


@pytest.fixture(scope="module")
def salts(oracle, tmp_path_factory):
    asked = json.dumps([[name, args] for name, args, _ in CALLS])
    return json.loads(oracle.run("python", "-c", _ASK, str(tmp_path_factory.mktemp("salt")), stdin=asked))


@pytest.mark.oracle
@pytest.mark.parametrize("number", range(len(CALLS)), ids=[f"{name}{args}" for name, args, _ in CALLS])
def test_as_salt(plain, salts, number):
    name, args, how = CALLS[number]
    own, theirs = plain.context(host=Host("/")).call(name, *args), salts[number]
    if how == "names":
        own, theirs = sorted(own), sorted(theirs)
    assert own == theirs


def test_interfaces(plain):
    lo = plain.call("network.interfaces")["lo"]
    assert lo["inet"] == [{"address": "127.0.0.1", "netmask": "255.0.0.0", "broadcast": None, "label": "lo"}]
    assert plain.call("network.interface", "lo") == lo["inet"]
    assert plain.call("network.ip_addrs", "lo", True) == ["127.0.0.1"]
    assert plain.call("network.ip_addrs", cidr="127.0.0.0/8", include_loopback=True) == ["127.0.0.1"]
    assert plain.call("network.ip_addrs", type="public", include_loopback=True).count("127.0.0.1") == 0


def test_the_mounted_host_has_a_name(plain):
    (plain.root / "etc").mkdir()
    (plain.root / "etc/hostname").write_text("far\n")
    assert plain.call("network.get_hostname") == "far"
    assert plain.call("network.get_fqdn") == "far"


def test_status(plain):
    up = plain.call("status.uptime")
    assert up["seconds"] > 0
    assert up["days"] == up["seconds"] // 86400
    assert plain.call("status.nproc") == len(os.sched_getaffinity(0))
    (plain.root / "srv").mkdir()
    assert list(plain.call("status.diskusage", "/srv", "/none")) == ["/srv"]
    assert str(os.getppid()) in plain.context(host=Host("/")).call("status.pid", "").split()


def test_text(plain):
    assert len(plain.call("random.get_str", 30)) == 30
    assert set(plain.call("random.get_str", 30, chars="ab")) <= {"a", "b"}
    assert plain.call("random.get_str", 50, lowercase=False, uppercase=False, punctuation=False).isdecimal()
    (plain.root / "x").write_text("get salted")
    assert plain.call("hashutil.digest_file", "/x") == plain.call("hashutil.md5_digest", "get salted")
    assert plain.call("hashutil.base64_decodefile", plain.call("hashutil.base64_encodefile", "/x"), "/y") is True
    assert (plain.root / "y").read_text() == "get salted"


@pytest.mark.parametrize(
    ("name", "args", "error", "words"),
    [
        ("hashutil.digest", ("a", "sha1"), CommandError, "Hash func 'sha1' is not supported"),
        ("hashutil.digest_file", ("/none",), CommandError, "File path '/none' not found"),
        ("network.hw_addr", ("none0",), CommandError, "Interface none0 not available. There are"),
        ("random.hash", ("a", "md99"), InvocationError, "no digest 'md99'"),
        ("random.str_encode", ("a", "rot13"), InvocationError, "valid encoder"),
        ("random.get_str", (3, None, False, False, False, False), InvocationError, "no characters"),
        ("disk.usage", ("-h; x",), CommandError, "no letters"),
    ],
)
def test_errors(plain, name, args, error, words):
    with pytest.raises(error, match=words):
        plain.call(name, *args)
