"""A made-up master for the API's benchmark: it answers on ports 4507 and 4513 at once, so what is measured is the API alone.

python -m bench.quick_master CONFIG_DIR

A publication gets its JID, and _RETURN_SECONDS later the events of the job and of the minion's return, as from a real master. No
worker, no Redis and no minion takes part.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgpack
import zmq

from saltern.kit.config.master import MasterOptions, load_client
from saltern.kit.keys.keygen import make_keys
from saltern.kit.links.control import ok, refused
from saltern.kit.links.curve_auth import CurveAuth
from saltern.kit.links.event_bus import PROBE, pack
from saltern.kit.links.sockets import LinkKeys, bind

#: Seconds between a publication and its return: about as long as a job takes on a machine that has nothing else to do.
_RETURN_SECONDS = 0.01

_TOKEN = "ab" * 20


class QuickMaster:
    """Answers the commands that the API sends, from memory. Jobs are forgotten when they have returned."""

    def __init__(self) -> None:
        self._last = 0
        #: (time at which it is due, JID, minion) of returns that have not come yet.
        self.due: deque[tuple[float, str, str]] = deque()
        #: Command -> how often it was asked.
        self.asked: dict[str, int] = {}

    def answer(self, fields: dict[str, Any]) -> bytes:
        """Return the packed answer to a command."""
        cmd = fields["cmd"]
        self.asked[cmd] = self.asked.get(cmd, 0) + 1
        if cmd == "publish":
            self._last = max(self._last + 1, int(datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")))
            self.due.append((time.monotonic() + _RETURN_SECONDS, str(self._last), str(fields["tgt"])))
            return ok({"jid": str(self._last), "minions": [fields["tgt"]], "missing": []})
        now = time.time()
        user = {"name": "bench", "eauth": "file", "perms": [".*"], "start": now, "expire": now + 3600}
        answers = {"ping": {"id": "bench"}, "login": {"token": _TOKEN, **user}, "token_info": user}
        answers |= {"job_returns": {}, "kept_events": []}
        return ok(answers[cmd]) if cmd in answers else refused("UnknownCommand", cmd)

    def events(self) -> list[bytes]:
        """Return the packed events that are due now: those of each job, two a return."""
        found: list[bytes] = []
        while self.due and self.due[0][0] <= time.monotonic():
            _, jid, minion = self.due.popleft()
            job = {"jid": jid, "fun": "test.ping", "arg": [], "tgt": minion, "tgt_type": "glob", "user": "bench"}
            found.append(pack(f"salt/job/{jid}/new", {**job, "minions": [minion], "missing": []}))
            result = {"jid": jid, "id": minion, "fun": "test.ping", "fun_args": [], "cmd": "_return"}
            result |= {"return": True, "retcode": 0, "success": True}
            found.append(pack(f"salt/job/{jid}/ret/{minion}", result))
        return found


def configure(directory: Path, ports: list[int], more: dict[str, Any]) -> None:
    """Write the keys and the configuration of such a master into a directory. ``ports``: of 4507 and 4513."""
    make_keys(directory / "keys")
    options: dict[str, Any] = {
        "interface": "127.0.0.1",
        "internal_interface": "127.0.0.1",
        "reqserver_host": "127.0.0.1",
    }
    options |= {"eventpublisher_host": "127.0.0.1"}
    options |= {"control_port": ports[0], "event_pub_port": ports[1], "health_interface": "127.0.0.1"} | more
    # JSON is YAML.
    (directory / "master").write_text(json.dumps(options), "utf-8")


def serve(options: MasterOptions, keys: Path) -> None:
    """Answer requests, and send events, until the process ends."""
    contexts: list[zmq.Context[zmq.Socket[bytes]]] = [zmq.Context(), zmq.Context()]
    control, bus = contexts[0].socket(zmq.ROUTER), contexts[1].socket(zmq.XPUB)
    bus.setsockopt(zmq.XPUB_VERBOSER, 1)
    doors = [CurveAuth(contexts[0], LinkKeys.load(keys / "reqserver"))]
    doors.append(CurveAuth(contexts[1], LinkKeys.load(keys / "eventpublisher"), lambda client: True))
    doors[0].serve(control, "control")
    doors[1].serve(bus, "event_pub")
    bind(control, "127.0.0.1", options.control_port, "control_port")
    bind(bus, "127.0.0.1", options.event_pub_port, "event_pub_port")
    poller = zmq.Poller()
    poller.register(control, zmq.POLLIN)
    poller.register(bus, zmq.POLLIN)
    master = QuickMaster()
    while True:
        ready = dict(poller.poll(1 if master.due else 100))
        if control in ready:
            identity, empty, request, payload = control.recv_multipart()
            control.send_multipart([identity, empty, request, master.answer(msgpack.unpackb(payload))])
        if bus in ready and (topic := bus.recv())[1:].startswith(PROBE) and topic[:1] == b"\x01":
            bus.send(topic[1:])
        for event in master.events():
            bus.send(event)


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    serve(load_client(str(directory)), directory / "keys")
