"""network, status, disk, hashutil, random: what templates ask; beside real Salt where it answers the same."""

from __future__ import annotations

import json
import os
import socket

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError

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
    ("network.routes", (), ""),
    ("network.routes", ("inet6",), ""),
    ("network.default_route", (), "routes"),
    ("network.arp", (), ""),
    ("network.ip_in_subnet", ("172.17.0.4", "172.16.0.0/12"), ""),
    ("network.convert_cidr", ("172.31.5.1/16",), ""),
    ("network.convert_cidr", ("fe80::1/64",), ""),
    ("network.ifacestartswith", ("127.",), ""),
    ("network.ip_networks", (), ""),
    ("network.ip_networks", ("lo", True, True), ""),
    ("network.ip_networks6", (None, True), ""),
    ("network.ip_neighs6", (), ""),
    ("network.iphexval", ("10.0.250.1",), ""),
    ("network.connect", ("127.0.0.1", 1), ""),
    ("network.connect", ("127.0.0.1",), ""),
    ("network.connect", ("", 1), ""),
    ("network.connect", ("name.invalid", 1), ""),
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
    elif how == "routes":
        # Where netstat is installed, Salt also lists the route by which an IPv6 kernel refuses packets.
        theirs = [route for route in theirs if "!" not in route["flags"]]
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
        ("random.hash", ("a", "md99"), InvocationError, "unknown digest algorithm 'md99'"),
        ("random.str_encode", ("a", "rot13"), InvocationError, "valid encoder"),
        ("random.get_str", (3, None, False, False, False, False), InvocationError, "no characters"),
        ("disk.usage", ("-h; x",), CommandError, "are not option letters"),
    ],
)
def test_errors(plain, name, args, error, words):
    with pytest.raises(error, match=words):
        plain.call(name, *args)


def test_disks_without_df(plain):
    """What df tells, to what is written meanwhile."""

    class Bare(Host):
        def which(self, program):
            return None if program == "df" else super().which(program)

    own, theirs = (plain.context(host=kind("/")).call("disk.usage") for kind in (Bare, Host))
    assert set(theirs) <= set(own)
    assert own["/"].keys() == theirs["/"].keys()
    assert own["/"]["1K-blocks"] == theirs["/"]["1K-blocks"]
    assert own["/"]["filesystem"] == theirs["/"]["filesystem"]
    assert abs(int(own["/"]["capacity"][:-1]) - int(theirs["/"]["capacity"][:-1])) <= 1
    own, theirs = (plain.context(host=kind("/")).call("disk.inodeusage")["/"] for kind in (Bare, Host))
    assert (own["inodes"], own["filesystem"]) == (theirs["inodes"], theirs["filesystem"])


def test_a_mounted_hosts_routes(plain):
    net = plain.root / "proc/1/net"
    net.mkdir(parents=True)
    (plain.root / "proc/stat").write_text("btime 1\n")
    (net / "route").write_text("Iface ...\neth9 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n")
    (net / "arp").write_text("IP ...\n10.0.0.1 0x1 0x2 aa:bb * eth9\n10.0.0.2 0x1 0x0 00:00 * eth9\n")
    assert plain.call("network.default_route") == [
        {
            "addr_family": "inet",
            "destination": "0.0.0.0",
            "gateway": "10.0.0.1",
            "netmask": "0.0.0.0",
            "flags": "UG",
            "interface": "eth9",
        }
    ]
    assert plain.call("network.arp") == {"aa:bb": "10.0.0.1"}


def test_a_server_that_answers(plain):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        told = plain.call("network.connect", "127.0.0.1", port, timeout=2)
    assert told == {"result": True, "comment": f"Successfully connected to 127.0.0.1 (127.0.0.1) on tcp port {port}"}


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "error", "why"),
    [
        ("network.routes", ("inet9",), {}, CommandError, "Invalid address family inet9"),
        ("network.convert_cidr", ("10.0.0.0/99",), {}, InvocationError, "does not appear"),
        ("network.connect", ("127.0.0.1", 1), {"family": "ipx"}, InvocationError, "family is ipv4 or ipv6, not 'ipx'"),
        ("network.get_route", ("--help",), {}, InvocationError, "'--help' does not appear"),
    ],
)
def test_addresses_that_are_none(plain, name, args, kwargs, error, why):
    with pytest.raises(error, match=why):
        plain.call(name, *args, **kwargs)
