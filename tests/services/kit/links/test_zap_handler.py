"""What libzmq asks before it lets somebody in, and what it is answered. Real connections are in test_links."""

from __future__ import annotations

from pathlib import Path

import pytest
import zmq

from saltern.kit.config.master import ConfigError
from saltern.kit.links.curve_auth import CurveAuth, ZapHandler, verdict
from saltern.kit.links.sockets import LinkKeys

KEY = bytes(range(32))

ASKED = [b"1.0", b"7", b"control", b"127.0.0.1", b"", b"CURVE", KEY]


def admit(domain: str, key: bytes) -> str:
    return "cli" if (domain, key) == ("control", KEY) else ""


@pytest.mark.parametrize(
    ("frames", "status", "name"),
    [
        (ASKED, b"200", b"cli"),
        ([*ASKED[:2], b"workers", *ASKED[3:]], b"400", b""),
        ([*ASKED[:2], b"\xff", *ASKED[3:]], b"400", b""),
        ([*ASKED[:6], bytes(32)], b"400", b""),
        ([*ASKED, b"more"], b"400", b""),
        (ASKED[:6], b"400", b""),
        ([*ASKED[:5], b"NULL"], b"400", b""),
        ([*ASKED[:5], b"PLAIN", b"cli", b"secret"], b"400", b""),
        ([b"2.0", *ASKED[1:]], b"500", b""),
        (ASKED[:4], b"500", b""),
        ([b"1.0"], b"500", b""),
        ([], b"500", b""),
    ],
)
def test_verdicts(frames: list[bytes], status: bytes, name: bytes) -> None:
    version, request, code, text, user, metadata = verdict(frames, admit)
    assert (version, request, code, user, metadata) == (
        b"1.0",
        frames[1] if len(frames) > 1 else b"",
        status,
        name,
        b"",
    )
    assert text


def test_refusals_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    admittance = ZapHandler(context, admit)
    asking = context.socket(zmq.REQ)
    asking.connect("inproc://zeromq.zap.01")
    for domain in (b"workers", b"workers", b"control"):
        asking.send_multipart([b"1.0", b"1", domain, b"10.0.0.9", b"", b"CURVE", KEY])
        assert asking.poll(20_000)
        asking.recv_multipart()
    asking.close(linger=0)
    admittance.stop()
    context.term()
    assert [record.message for record in caplog.records] == [
        "link workers: 10.0.0.9 is turned away: its key may not use this link, or has no right"
    ]


@pytest.mark.parametrize("public", [b"", b"short", b"\xff" * 40, b"~" * 40])
def test_a_known_key_that_is_none_is_named(tmp_path: Path, role_keys: Path, public: bytes) -> None:
    whole = LinkKeys.load(role_keys / "reqserver")
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        with pytest.raises(ConfigError, match="the public key of cli: not a CurveZMQ key"):
            CurveAuth(context, LinkKeys(whole.secret, whole.public, {**whole.known, "cli": (public,)}))
    finally:
        context.term()
