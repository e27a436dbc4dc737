"""Sockets and probes of the module ``network``; its addresses and routes are in test_of_templates.py."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from statecore.builtin.modules import network
from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import CommandResult


class Played(Host):
    """A host whose programs tell what they are to tell; ``asked`` is how they were started."""

    def __init__(self, root: Path, told: Mapping[str, CommandResult]) -> None:
        super().__init__(root)
        self._told = told
        self.asked: list[str] = []

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if program in self._told else None

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        words = cmd.split() if isinstance(cmd, str) else list(cmd)
        self.asked.append(" ".join(words))
        return self._told[words[0]]


def said(text: str, code: int = 0) -> CommandResult:
    return CommandResult(code, text, "", 1)


@pytest.fixture
def asked(plain: Any) -> Callable[..., tuple[Any, list[str]]]:
    """What a function tells of a host with one program, and how that was started."""

    def ask(program: str, result: CommandResult, name: str, *args: Any, **kwargs: Any) -> tuple[Any, list[str]]:
        host = Played(plain.root, {program: result})
        return plain.context(host=host).call(f"network.{name}", *args, **kwargs), host.asked

    return ask


def test_sockets(plain: Any) -> None:
    ctx = plain.context(host=Host("/"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            own = client.getsockname()[1]
            found = {(each["local-address"], each["remote-address"]): each for each in ctx.call("network.netstat")}
            active = ctx.call("network.active_tcp")
            inode = os.fstat(server.fileno()).st_ino
    listening = found["127.0.0.1:" + str(port), "0.0.0.0:*"]
    assert listening["proto"] == "tcp"
    assert listening["state"] == "LISTEN"
    assert listening["inode"] == str(inode)
    assert listening["user"] == str(os.geteuid())
    assert listening["program"].startswith(f"{os.getpid()}/")
    assert found[f"127.0.0.1:{own}", f"127.0.0.1:{port}"]["state"] == "ESTABLISHED"
    row = {"local_addr": "127.0.0.1", "local_port": own, "remote_addr": "127.0.0.1", "remote_port": port}
    assert row in active.values()
    assert list(active) == list(range(len(active)))


@pytest.mark.skipif(sys.byteorder != "little", reason="the table is of such a machine")
def test_sockets_of_a_mounted_host(plain: Any) -> None:
    net = plain.root / "proc/1/net"
    net.mkdir(parents=True)
    (plain.root / "proc/stat").write_text("")
    rest = "00:00000000 00000000  1000        0 4711 1 0 0 0 0 -1"
    (net / "tcp6").write_text(
        "head\n 0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 00000002:00000001 " + rest
        + "\n 1: 0000000000000000FFFF00000100007F:0016 0000000000000000FFFF00000200007F:8000 01 00000000:00000000 " + rest + "\n"
    )  # fmt: skip
    (net / "udp").write_text("head\n 0: 0100007F:0035 00000000:0000 07 00000000:00000000 " + rest + "\n")
    told = plain.call("network.netstat")
    shared = {"user": "1000", "inode": "4711", "program": "-"}
    assert told == [
        {
            "proto": "tcp6",
            "recv-q": "1",
            "send-q": "2",
            "local-address": ":::22",
            "remote-address": ":::*",
            "state": "LISTEN",
        }
        | shared,
        {"proto": "tcp6", "recv-q": "0", "send-q": "0", "local-address": "::ffff:127.0.0.1:22"}
        | {"remote-address": "::ffff:127.0.0.2:32768", "state": "ESTABLISHED"}
        | shared,
        {"proto": "udp", "recv-q": "0", "send-q": "0", "local-address": "127.0.0.1:53", "remote-address": "0.0.0.0:*"}
        | shared,
    ]
    assert plain.call("network.active_tcp") == {
        0: {"local_addr": "127.0.0.1", "local_port": 22, "remote_addr": "127.0.0.2", "remote_port": 32768}
    }


def test_ping(asked: Any) -> None:
    assert asked("ping", said("PING x\n"), "ping", "x.test") == ("PING x", ["ping -c 4 x.test"])
    assert asked("ping", said(""), "ping", "::1", timeout=3, return_boolean=True) == (True, ["ping -W 3 -c 4 ::1"])
    assert asked("ping", said("", 1), "ping", "x", return_boolean=True)[0] is False


HOPS = """traceroute to x.test (192.0.2.1), 30 hops max, 60 byte packets
 1  gw.test (10.0.0.1)  0.512 ms  0.401 ms  0.388 ms
 2  * * *
 3  x.test (192.0.2.1)  9.1 ms * 8.5 ms
"""


def test_traceroute(asked: Any) -> None:
    told, started = asked("traceroute", said(HOPS), "traceroute", "x.test")
    assert started == ["traceroute x.test"]
    assert told == [
        {"count": 1, "hostname": "gw.test", "ip": "10.0.0.1", "ms1": 0.512, "ms2": 0.401, "ms3": 0.388},
        {"count": 2, "hostname": "*"},
        {"count": 3, "hostname": "x.test", "ip": "192.0.2.1", "ms1": 9.1, "ms2": None, "ms3": 8.5},
    ]
    late = CommandResult(-15, HOPS, "", 1, timed_out=True)
    assert asked("traceroute", late, "traceroute", "x")[0] == []
    with pytest.raises(CommandError, match="exit code 2: unknown host"):
        asked("traceroute", said("unknown host\n", 2), "traceroute", "x")


def test_dig(asked: Any) -> None:
    assert asked("dig", said("; <<>> x\n"), "dig", "x.test") == ("; <<>> x", ["dig x.test"])


RINGS = """Ring parameters for eth0:
Pre-set maximums:
RX:\t\t4096
RX Mini:\tn/a
TX:\t\t4096
Current hardware settings:
RX:\t\t256
TX:\t\t512
"""


def test_buffers_of_a_card(asked: Any) -> None:
    told, started = asked("ethtool", said(RINGS), "get_bufsize", "eth0")
    assert told == {"rx-max": 4096, "tx-max": 4096, "rx": 256, "tx": 512, "result": True}
    assert started == ["ethtool -g eth0"]
    none = {"result": False, "comment": "netlink error: Operation not supported"}
    assert asked("ethtool", said(f"{none['comment']}\n", 1), "get_bufsize", "lo")[0] == none
    told, started = asked("ethtool", said(""), "mod_bufsize", "eth0", tx=512, rx=256)
    assert (told, started) == ({"result": True, "comment": "rx 256 tx 512"}, ["ethtool -G eth0 rx 256 tx 512"])
    assert asked("ethtool", said(""), "mod_bufsize", "eth0", up=1)[0]["comment"] == "Unknown arguments: up=1"
    assert asked("ethtool", said(""), "mod_bufsize", "eth0")[0]["result"] is False
    assert asked("ethtool", said("no such device\n", 80), "mod_bufsize", "e", rx=1)[0] == {
        "result": False,
        "comment": "no such device",
    }
    assert asked("other", said(""), "get_bufsize", "eth0")[0] == {}
    assert asked("other", said(""), "mod_bufsize", "eth0", rx=1)[0] is False


def test_a_machine_is_woken(plain: Any) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        heard.bind(("127.0.0.1", 0))
        heard.settimeout(10)
        port = heard.getsockname()[1]
        for mac in ("08:00:27:13:69:77", "080027136977", "08-00-27-13-69-77"):
            assert plain.call("network.wol", mac, "127.0.0.1", port) is True
            assert heard.recv(200) == b"\xff" * 6 + bytes.fromhex("080027136977") * 16


@pytest.mark.parametrize(
    ("name", "args", "error", "why"),
    [
        ("ping", ("x",), CommandError, "the host has no ping"),
        ("traceroute", ("x",), CommandError, "the host has no traceroute"),
        ("dig", ("x",), CommandError, "the host has no dig"),
        ("ip_neighs6", (), CommandError, "the host does not have the program ip"),
        ("wol", ("8:0:27",), InvocationError, "Invalid MAC address '8:0:27'"),
        (
            "wol",
            ("08:00:27:13:69:77", "nowhere.invalid"),
            CommandError,
            "the packet cannot be sent to nowhere.invalid:9",
        ),
    ],
)
def test_what_cannot_be_asked(plain: Any, name: str, args: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        plain.call(f"network.{name}", *args)


@pytest.mark.parametrize("name", ["ping", "traceroute", "dig", "get_bufsize"])
def test_a_name_is_no_option(asked: Any, name: str) -> None:
    program = "ethtool" if name == "get_bufsize" else name
    with pytest.raises(InvocationError, match="'-f' is neither a host name nor an address"):
        asked(program, said(""), name, "-f")


def test_names_of_own_addresses(plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"10.0.0.1": "a.test", "10.0.0.2": "b.test"}

    def asked_for(address: str) -> Any:
        if address not in names:
            raise socket.herror(1, "Unknown host")
        return names[address], [], []

    monkeypatch.setattr(socket, "gethostbyaddr", asked_for)
    monkeypatch.setattr(socket, "getfqdn", lambda name: name)
    monkeypatch.setattr(network, "ip_addrs", lambda _: ["10.0.0.2", "10.0.0.1", "10.0.0.9"])
    monkeypatch.setattr(network, "ip_addrs6", lambda _: [])
    assert plain.call("network.fqdns") == {"fqdns": ["a.test", "b.test"]}
