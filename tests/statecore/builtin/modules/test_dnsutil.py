"""dnsutil and dig: hosts files, zones, a dig that is played; beside real Salt."""

from __future__ import annotations

import json
import os

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError

HOSTS = "# mine\n127.0.0.1 localhost loop\n\n10.0.0.1\ta b # two\n10.0.0.1 c\n::1 ip6\n"

ZONE = """$ORIGIN example.com.
$TTL 1d ; a day
@ 3600 IN SOA ns1.example.com. admin.example.com. (
    2024010101 ; serial
    8H 2h 4w
    300 )
@ IN NS ns1.example.com.
@ IN NS ns2.example.com.
@ IN MX 10 mail.example.com.
www 300 IN A 10.0.0.1
ftp IN CNAME www.example.com.
six 60 IN AAAA fe80::1
"""

#: name, record -> what dig prints; anything else fails.
ANSWERS = {
    "www.test A": "alias.test.\n10.0.0.1\n10.0.0.2",
    "www.test AAAA": "fe80::1",
    "www.test CNAME": "alias.test.",
    "www.test TXT": '"one two"\n"three"',
    "-x 10.0.0.1": "www.test.",
    "test NS": "ns1.test.\nns2.test.",
    "ns1.test. A": "10.0.0.3",
    "ns2.test. A": "10.0.0.4",
    "test MX": "10 mail.test.\n20 other.test.",
    "mail.test. A": "10.0.0.5",
    "other.test. A": "10.0.0.6",
    "test SPF": "",
    "test TXT": '"v=spf1 ip4:10.1.0.0/16 ~ip6:fe80::/64 include:more.test a mx ip4:nonsense -all"',
    "more.test SPF": '"v=spf1 redirect=last.test"',
    "last.test SPF": '"v=spf1 +ip4:10.2.0.1 -all"',
    "none.test SPF": "",
    "none.test TXT": '"something else"',
}

CALLS = [
    ("dnsutil.parse_hosts", [], {"hosts": "127.0.0.1 localhost loop\n10.0.0.1\ta b\n10.0.0.1 c\n"}),
    ("dnsutil.parse_hosts", ["/none"], {}),
    ("dnsutil.parse_zone", [], {"zone": ZONE}),
    ("dnsutil.parse_zone", ["/none"], {}),
    *[
        ("dnsutil.check_ip", [text], {})
        for text in ("10.0.0.1", "10.0.0.1/8", "10.0.0.1/33", "fe80::1/64", "fe80::/4", "x", "1.2.3")
    ],
    *[(f"dnsutil.{record}", ["www.test"], {}) for record in ("A", "AAAA")],
    ("dnsutil.A", ["nowhere.test"], {}),
    ("dnsutil.A", ["www.test", "10.0.0.9"], {}),
    ("dnsutil.NS", ["test"], {}),
    ("dnsutil.NS", ["test", False], {}),
    ("dnsutil.MX", ["test"], {}),
    ("dnsutil.MX", ["test", True], {}),
    ("dnsutil.SPF", ["test"], {}),
    ("dnsutil.SPF", ["none.test"], {}),
    ("dig.PTR", ["10.0.0.1"], {}),
    ("dig.CNAME", ["www.test"], {}),
    ("dig.TXT", ["www.test"], {}),
    ("dig.a", ["www.test"], {}),
]

_ASK = """
import json, sys, salt.config, salt.loader
opts = salt.config.minion_config(None)
opts.update(id="web1", file_client="local", cachedir=sys.argv[1], grains={"id": "web1", "kernel": "Linux", "os": "Debian"})
functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts))
json.dump([functions[name](*args, **kwargs) for name, args, kwargs in json.load(sys.stdin)], sys.stdout)
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A directory with a dig that answers from ANSWERS."""
    directory = tmp_path_factory.mktemp("bin")
    rows = "".join(
        f"'{asked}') cat <<'END'\n{said}\nEND\n;;\n" if said else f"'{asked}') ;;\n" for asked, said in ANSWERS.items()
    )
    program = directory / "dig"
    program.write_text(f'#!/bin/sh\n[ "$1" = +short ] || exit 9\ncase "$2 $3" in\n{rows}*) exit 9 ;;\nesac\n')
    program.chmod(0o755)
    return directory


@pytest.fixture
def ours(plain, programs, monkeypatch):
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return plain.context(host=Host("/"))


@pytest.fixture(scope="module")
def salts(oracle, programs, tmp_path_factory):
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{programs}:{before}"
    try:
        asked = json.dumps(CALLS)
        return json.loads(oracle.run("python", "-c", _ASK, str(tmp_path_factory.mktemp("salt")), stdin=asked))
    finally:
        os.environ["PATH"] = before


@pytest.mark.oracle
@pytest.mark.parametrize("number", range(len(CALLS)), ids=[f"{at}-{name}" for at, (name, *_) in enumerate(CALLS)])
def test_as_salt(ours, salts, number):
    name, args, kwargs = CALLS[number]
    assert ours.call(name, *args, **kwargs) == salts[number]


@pytest.mark.parametrize(
    ("name", "args", "wanted"),
    [
        ("dig.A", ["www.test"], ["10.0.0.1", "10.0.0.2"]),
        ("dig.MX", ["test", True], [["10", "10.0.0.5"], ["20", "10.0.0.6"]]),
        ("dig.SPF", ["test"], ["10.1.0.0/16", "fe80::/64", "10.2.0.1"]),
        ("dig.A", ["nowhere.test"], []),
    ],
)
def test_dig(ours, name, args, wanted):
    assert ours.call(name, *args) == wanted


@pytest.mark.parametrize("name", ["-f/etc/shadow", "+x", "@x", "", "a b"])
def test_names_are_no_options(ours, name):
    with pytest.raises(InvocationError, match="is not a valid name"):
        ours.call("dig.A", name)


def test_without_dig(plain):
    for call in (("check_ip", "10.0.0.1"), ("NS", "x"), ("MX", "x"), ("SPF", "x"), ("A", "x", "10.0.0.1")):
        assert (
            plain.call(f"dnsutil.{call[0]}", *call[1:])
            == "This function requires dig, which is not currently available"
        )
    assert plain.call("dnsutil.A", "127.0.0.1") == ["127.0.0.1"]
    assert plain.call("dnsutil.AAAA", "::1") == ["::1"]
    assert plain.call("dnsutil.A", "name.invalid") == "Unable to resolve name.invalid"


def test_hosts(plain):
    (plain.root / "etc").mkdir()
    place = plain.root / "etc/hosts"
    place.write_text(HOSTS.rstrip("\n"))
    assert plain.call("dnsutil.parse_hosts")["10.0.0.1"] == ["a", "b", "c"]
    told = plain.call("dnsutil.hosts_append", "/etc/hosts", "10.0.0.1", "c,d,e")
    assert told == "The following line was added to /etc/hosts:\n10.0.0.1 d e"
    assert place.read_text() == HOSTS + "10.0.0.1 d e\n"
    assert (
        plain.call("dnsutil.hosts_append", "/etc/hosts", "10.0.0.1", "d")
        == "No additional hosts were added to /etc/hosts"
    )
    plain.call("dnsutil.hosts_remove", "/etc/hosts", "a,d,e,ip6")
    assert place.read_text() == "# mine\n127.0.0.1 localhost loop\n\n10.0.0.1 b # two\n10.0.0.1 c\n"
    with pytest.raises(CommandError, match="/none: there is no such file"):
        plain.call("dnsutil.hosts_remove", "/none", "a")
    with pytest.raises(InvocationError, match="ip_addr and entries are needed"):
        plain.call("dnsutil.hosts_append", "/etc/hosts")


def test_every_mail_server_of_a_zone(plain):
    more = f"{ZONE}@ IN MX 20 second.example.com.\n"
    assert [each["host"] for each in plain.call("dnsutil.parse_zone", zone=more)["MX"]] == [
        "mail.example.com.",
        "second.example.com.",
    ]
    with pytest.raises(CommandError, match="the zone: 'www IN' cannot be read"):
        plain.call("dnsutil.parse_zone", zone="$ORIGIN x.\nwww IN\n")


def test_serial(plain, monkeypatch):
    kept = {}
    ctx = plain.context()
    table = {"grains.get": lambda key: kept.get(key, ""), "grains.setval": lambda key, val: kept.update({key: val})}
    call = type(ctx).call
    monkeypatch.setattr(
        type(ctx),
        "call",
        lambda self, name, *args, **kwargs: table[name](*args) if name in table else call(self, name, *args, **kwargs),
    )
    first = ctx.call("dnsutil.serial", "a.test")
    assert kept == {}
    assert ctx.call("dnsutil.serial", "a.test", update=True) == first
    assert ctx.call("dnsutil.serial", "a.test", update=True) == str(int(first) + 1)
    assert kept == {"dnsserial_a.test": str(int(first) + 1)}
