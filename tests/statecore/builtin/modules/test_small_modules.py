"""temp, netaddress, xml, sqlite3, minion, cp's cache, test's reports and the states loop; Salt's answers where it has the
module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult
from tests.conftest import Oracle
from tests.statecore.conftest import PlainMinion
from tests.statecore.function_calls import Call, ours, salts

XML = "<r><a id='1'>x</a><b><c/></b></r>"

#: D is a directory of its own for ours and for Salt.
CALLS: list[Call] = [
    ("xml.get_value", ["D/x.xml", "a"], {}),
    ("xml.get_value", ["D/x.xml", ".//c"], {}),
    ("xml.get_value", ["D/x.xml", "none"], {}),
    ("xml.set_value", ["D/x.xml", "b/c", 5], {}),
    ("xml.get_value", ["D/x.xml", "b/c"], {}),
    ("xml.get_attribute", ["D/x.xml", "a[@id='1']"], {}),
    ("xml.set_attribute", ["D/x.xml", "a", "k", 7], {}),
    ("xml.get_attribute", ["D/x.xml", "a"], {}),
    ("xml.get_attribute", ["D/x.xml", "none"], {}),
    ("$", "grep -F '<a id=\"1\" k=\"7\">x</a>' D/x.xml", {}),
    ("sqlite3.version", [], {}),
    ("sqlite3.modify", ["D/db", "CREATE TABLE t (a INT, b TEXT)"], {}),
    ("sqlite3.modify", ["D/db", "INSERT INTO t VALUES (1, 'x')"], {}),
    ("sqlite3.fetch", ["D/db", "SELECT * FROM t"], {}),
    ("sqlite3.modify", ["D/db", "CREATE INDEX i ON t (a)"], {}),
    ("sqlite3.tables", ["D/db"], {}),
    ("sqlite3.indices", ["D/db"], {}),
    ("sqlite3.indexes", ["D/db"], {}),
    ("sqlite3.fetch", [], {}),
    ("cp.cache_dest", ["/etc/hosts"], {}),
    ("cp.cache_local_file", ["D/none"], {}),
    ("test.tty", ["tty0", "x"], {}),
    ("test.deprecation_warning", [], {}),
    ("minion.list", [], {}),
    ("apache.config", ["D/conf", [{"Listen": "22"}, {"Listen": ["23", "24"]}]], {}),
    ("apache.config", ["D/conf"], {"config": [
        {"VirtualHost": {"this": "*:80", "ServerName": "x", "ServerAlias": ["a", "b"],
                         "Directory": {"this": "/srv", "Order": "Deny,Allow", "Limit": {"this": "GET", "Allow": ["1", "2"]}}}},
        {"IfModule": [{"this": "m"}, {"A": "1"}, {"B": {"this": "z", "C": "2"}}]},
    ]}),
    ("$", "grep -F '# This file is managed by Salt.' D/conf", {}),
    ("apache.config", ["D/conf", [{"Listen": "x"}], False], {}),
    ("apache.version", [], {}),
    ("apache.fullversion", [], {}),
    ("apache.modules", [], {}),
    ("apache.servermods", [], {}),
    ("apache.directives", [], {}),
    ("apache.vhosts", [], {}),
    ("apache.signal", ["restart"], {}),
    ("apache.signal", ["status"], {}),
    ("apache.signal", ["configtest"], {}),
    ("apache.signal", ["none"], {}),
]  # fmt: skip

#: What Apache 2.4.57 of Debian prints, shortened.
APACHE = r"""#!/bin/sh
case "$*" in
-v) printf 'Server version: Apache/2.4.57 (Debian)\nServer built:   2023-04-13T03:26:51\n' ;;
-V) printf 'Server version: Apache/2.4.57 (Debian)\nServer MPM:     event\n  threaded:     yes (fixed thread count)\n'
    printf 'Server compiled with....\n -D APR_HAS_SENDFILE\n -D HTTPD_ROOT="/etc/apache2"\n' ;;
-M) printf 'Loaded Modules:\n core_module (static)\n so_module (static)\n alias_module (shared)\n' ;;
-l) printf 'Compiled in modules:\n  core.c\n  mod_so.c\n' ;;
-L) printf '<Directory (core.c)\n\tContainer for directives\n\tAllowed in *.conf\nListen (event.c)\n\tA port number\n' ;;
-S) printf 'VirtualHost configuration:\n*:80                   is a NameVirtualHost\n'
    printf '         default server x.test (/etc/apache2/sites-enabled/x.conf:1)\n'
    printf '         port 80 namevhost y.test (/etc/apache2/sites-enabled/y.conf:1)\n'
    printf '                 alias www.y.test\nServerRoot: "/etc/apache2"\n' ;;
'-k restart') ;;
configtest) echo 'Syntax OK' >&2 ;;
*) echo "$*"; exit 1 ;;
esac
"""


@pytest.fixture
def here(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PlainMinion:
    """A minion of this machine, with a played apache2ctl."""
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": Host(), **changes}))
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "apache2ctl").write_text(APACHE)
    (programs / "apache2ctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return plain


def placed(calls: list[Call], directory: Path) -> list[Call]:
    directory.mkdir()
    (directory / "x.xml").write_text(XML)
    found: list[Call] = json.loads(json.dumps(calls).replace("D/", f"{directory}/"))
    return found


@pytest.mark.oracle
def test_as_salt(here: PlainMinion, oracle: Oracle, tmp_path: Path) -> None:
    here.opts["pki_dir"] = str(tmp_path / "pki/minion")
    told = ours(here.call, placed(CALLS, tmp_path / "ours"))
    stock = salts(oracle, tmp_path / "salt", placed(CALLS, tmp_path / "salts"))
    assert [[*call, answer] for call, answer in zip(CALLS, told, strict=True)] == [
        [*call, answer] for call, answer in zip(CALLS, stock, strict=True)
    ]


def test_temporary_files_are_the_hosts(plain: PlainMinion) -> None:
    (plain.root / "tmp").mkdir()
    (plain.root / "srv").mkdir()
    name, folder = plain.call("temp.file", suffix=".x", prefix="a"), plain.call("temp.dir", parent="/srv")
    assert (name[:6], name[-2:], folder[:8]) == ("/tmp/a", ".x", "/srv/tmp")
    made, directory = plain.root / name[1:], plain.root / folder[1:]
    assert (made.stat().st_mode & 0o777, directory.stat().st_mode & 0o777) == (0o600, 0o700)
    assert plain.call("temp.file") != plain.call("temp.file")


NETWORKS = [
    ("list_cidr_ips", "192.168.0.0/30", ["192.168.0.0", "192.168.0.1", "192.168.0.2", "192.168.0.3"]),
    ("list_cidr_ips", "10.0.0.7", ["10.0.0.7"]),
    ("list_cidr_ips_ipv6", "192.168.0.0/31", ["::ffff:192.168.0.0", "::ffff:192.168.0.1"]),
    ("list_cidr_ips_ipv6", "fe80::/127", ["fe80::", "fe80::1"]),
    ("cidr_netmask", "192.168.0.9/20", "255.255.240.0"),
    ("cidr_broadcast", "192.168.0.0/20", "192.168.15.255"),
    ("cidr_broadcast", "192.168.0.0/31", "None"),
    ("cidr_broadcast", "fe80::/64", "None"),
]


@pytest.mark.parametrize(("function", "network", "told"), NETWORKS)
def test_networks(plain: PlainMinion, function: str, network: str, told: Any) -> None:
    assert plain.call(f"netaddress.{function}", network) == told


@pytest.mark.parametrize(
    ("function", "args", "said"),
    [
        ("netaddress.cidr_netmask", ["x/20"], "invalid network x/20"),
        ("netaddress.list_cidr_ips", ["fe80::/64"], "more than 1000000"),
        ("xml.get_value", ["/none", "a"], "/none: No such file"),
        ("xml.get_value", ["/bad", "a"], "/bad: no well-formed XML"),
        ("xml.set_value", ["/bomb", "a", "x"], "/bomb: defines entities"),
        ("sqlite3.fetch", ["/bad", "SELECT * FROM sqlite_master"], "/bad: file is not a database"),
        ("sqlite3.fetch", ["/db", "SELEC"], "/db: near"),
        ("minion.restart", [], "only a service of systemd"),
        ("cp.cache_local_file", ["/../bad"], "a path with .."),
    ],
)
def test_errors_name_the_object(plain: PlainMinion, function: str, args: list[Any], said: str) -> None:
    (plain.root / "bad").write_text("<r>" * 400)
    (plain.root / "bomb").write_text('<!DOCTYPE r [<!ENTITY a "b">]><r/>')
    with pytest.raises(CommandError, match=said):
        plain.call(function, *args)


def test_the_cache_of_local_files(plain: PlainMinion) -> None:
    (plain.root / "etc").mkdir()
    (plain.root / "etc/motd").write_text("hello")
    copy = plain.call("cp.cache_local_file", "/etc/motd")
    assert Path(copy).read_text() == "hello"
    assert plain.call("cp.list_minion") == ["etc/motd"]
    cache = plain.opts["cachedir"]
    assert plain.call("cp.cache_dest", "salt://a/b?saltenv=dev") == f"{cache}/files/dev/a/b"
    assert plain.call("cp.cache_dest", "https://h.test/x").startswith(cache)


def test_reports_of_modules(plain: PlainMinion) -> None:
    report = plain.call("test.module_report")
    assert "test.ping" in report["functions"]
    assert report["missing_attrs"] == report["missing_subs"] == []
    left = plain.call("test.not_loaded")
    assert "rabbitmq" in left
    assert not {"test", "cmd", "cp"}.intersection(left)


def test_minion_restart_by_systemd(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch) -> None:
    plain.grains["init"] = "systemd"
    asked: list[Any] = []

    def restart(name: str, no_block: bool = False) -> bool:
        asked.append((name, no_block))
        return True

    ctx = plain.context()
    functions = {
        "service.restart": restart,
        "cmd.run_all": lambda *a, **k: {"retcode": 0, "stderr": "unit", "stdout": ""},
    }
    table = ctx.functions

    class Played(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            return table[name]

    object.__setattr__(ctx, "functions", Played(functions))
    answer = plain.loader.function("modules", "minion.restart", ctx)[0].functions["restart"](ctx, schedule_retry=True)
    assert asked == [("salt-minion", True)]
    assert (answer["retcode"], answer["service_restart"]["result"]) == (0, True)
    assert "Scheduled retry for minion restart in 180 seconds" in answer["comment"]


LOOPS: list[tuple[str, dict[str, Any], tuple[Any, str], tuple[Any, str]]] = [
    (
        "until",
        {"name": "test.echo", "m_args": [5], "condition": "m_ret == 5"},
        (None, "The execution module test.echo will be run"),
        (True, "Condition m_ret == 5 was met"),
    ),
    (
        "until",
        {"name": "test.echo", "m_kwargs": {"text": 1}, "condition": "m_ret > 5", "period": 0.01, "timeout": 0.05},
        (None, "The execution module test.echo will be run"),
        (False, "Timed out while waiting for condition m_ret > 5"),
    ),
    ("until", {"name": "no.such", "condition": "1"}, *[(False, "Cannot find module no.such")] * 2),
    ("until", {"name": "test.ping"}, *[(False, "An exit condition must be specified")] * 2),
    (
        "until",
        {"name": "test.ping", "condition": "1", "period": "x"},
        *[(False, "Period must be specified as a float in seconds")] * 2,
    ),
    (
        "until",
        {"name": "test.ping", "condition": "m_ret.none"},
        (None, "The execution module test.ping will be run"),
        (False, "Condition m_ret.none cannot be checked: AttributeError: 'bool' object has no attribute 'none'"),
    ),
    (
        "until_no_eval",
        {"name": "test.echo", "args": ["a"], "expected": "a"},
        (None, 'Would have waited for "test.echo" to produce "a".'),
        (True, "Call provided the expected results in 1 attempts"),
    ),
    (
        "until_no_eval",
        {"name": "test.echo", "kwargs": {"text": 1}, "expected": 2, "compare_operator": "lt"},
        (None, 'Would have waited for "test.echo" to produce "2".'),
        (True, "Call provided the expected results in 1 attempts"),
    ),
    (
        "until_no_eval",
        {"name": "test.echo", "args": [1], "expected": 2, "period": 1, "timeout": 0.01},
        (None, 'Would have waited for "test.echo" to produce "2".'),
        (False, "Call did not produce the expected result after 1 attempts"),
    ),
    (
        "until_no_eval",
        {"name": "test.echo", "args": [1], "expected": 2, "compare_operator": "none"},
        *[(False, 'Invalid operator "none" supplied.')] * 2,
    ),
    ("until_no_eval", {"name": "no.such", "expected": 1}, *[(False, 'Module.function "no.such" is unavailable.')] * 2),
]


@pytest.mark.parametrize(("function", "arguments", "would", "does"), LOOPS)
def test_loops(
    plain: PlainMinion, function: str, arguments: dict[str, Any], would: tuple[Any, str], does: tuple[Any, str]
) -> None:
    for test, told in ((True, would), (False, does)):
        entry = plain.state(f"loop.{function}", test=test, **arguments)
        assert (entry["result"], entry["comment"], entry["changes"]) == (*told, {})


SWITCHES = [
    ("apache_site", "site", "sites-enabled/x.conf", "site"),
    ("apache_module", "mod", "mods-enabled/x.load", "module"),
    ("apache_conf", "conf", "conf-enabled/x.conf", "conf"),
]


@pytest.mark.parametrize(("state", "word", "link", "label"), SWITCHES)
def test_apache_switches(
    plain: PlainMinion, monkeypatch: pytest.MonkeyPatch, state: str, word: str, link: str, label: str
) -> None:
    """A host whose a2en* and a2dis* make and remove the link; ``bad`` fails."""
    place = plain.root / "etc/apache2" / link
    place.parent.mkdir(parents=True)

    class Played(Host):
        def which(self, program: str) -> str | None:
            return f"/usr/sbin/{program}"

        def run(self, cmd: Any, **options: Any) -> Any:
            program, name = cmd
            if name == "bad":
                return CommandResult(1, "", "", 1)
            place.symlink_to("../x") if program.startswith("a2en") else place.unlink()
            return CommandResult(0, "", "", 1)

    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": Played(plain.root), **changes}))

    def told(function: str, name: str, test: bool = False) -> tuple[Any, Any, Any]:
        entry = plain.state(f"{state}.{function}", test=test, name=name)
        return entry["result"], entry["changes"], entry["comment"]

    new, old = {"old": None, "new": "x"}, {"old": "x", "new": None}
    assert told("enabled", "x", True) == (None, new, f"Apache {label} x is set to be enabled.")
    assert told("enabled", "x") == (True, new, "")
    assert told("enabled", "x") == (True, {}, "x already enabled.")
    assert told("disabled", "x", True) == (None, old, f"Apache {label} x is set to be disabled.")
    assert told("disabled", "x") == (True, old, "")
    assert told("disabled", "x") == (True, {}, "x already disabled.")
    said = f"Failed to enable bad Apache {label} ({word.capitalize()} bad Not found)"
    assert told("enabled", "bad") == (False, {}, said)


def test_apache_configfile(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch) -> None:
    class Played(Host):
        def which(self, program: str) -> str | None:
            return f"/usr/sbin/{program}"

    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": Played(plain.root), **changes}))
    config = [{"Listen": 80}, {"Location": {"this": "/", "Require": "all granted"}}]
    text = "Listen 80\n<Location />\nRequire all granted\n</Location>\n"
    for test, told in (
        (True, (None, {"old": "", "new": text}, "Configuration will update.")),
        (False, (True, {"old": "", "new": text}, "Successfully created configuration.")),
        (False, (True, {}, "Configuration is up to date.")),
    ):
        entry = plain.state("apache.configfile", test=test, name="/ports.conf", config=config)
        assert (entry["result"], entry["changes"], entry["comment"]) == told
    assert (plain.root / "ports.conf").read_text() == text + "\n"
    entry = plain.state("apache.configfile", name="/ports.conf", config=[{"Location": {"a": "b"}}])
    assert (entry["result"], entry["changes"]) == (False, {})
    assert 'expects attribute. Specify it using key "this"' in entry["comment"]
    entry = plain.state("apache.configfile", name="/none/x.conf", config=config)
    assert (entry["result"], entry["comment"][:37]) == (False, "Failed to create apache configuration")
