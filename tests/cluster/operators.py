"""Operators in the toolbox's pod who never stop asking, until stdin ends: python3 -c "$(cat operators.py)" MINIONS

Each line of stdout is a JSON object. {"kind", "number", "began", "took", "jid"} is a command that succeeded; one that failed has
"error" instead of "jid". Its kind is ``publish``, a job that leaves its number on each host, or ``answer``, a job whose returns of
all MINIONS were waited for. {"kind": "event", "began", "jid"}: a listener heard of a job. Times are seconds of the machine's clock.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import zmq

from saltern.kit.config.master import ClientOptions, load_client
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout, connect_control
from saltern.kit.links.event_bus import connect_bus

#: What each operator does.
_OPERATORS = ("publish", "publish", "answer")

#: Seconds between two commands of an operator: the minions of a busy machine must keep up.
_PAUSE = 1.0

#: Seconds for the listener's subscription to be active.
_SUBSCRIBED = 120.0

_ended = threading.Event()
_listening = threading.Event()
_lock = threading.Lock()
_numbers = iter(range(1, 1_000_000))


def _say(**fields: object) -> None:
    with _lock:
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()


def _publish(control: ControlClient, fun: str, *words: str) -> str:
    answer = control.call("publish", tgt="*", fun=fun, arg=list(words), request_id=os.urandom(16).hex())
    return str(answer["jid"])


def _answered(control: ControlClient, minions: int) -> str:
    jid = _publish(control, "test.ping")
    while len(control.call("job_returns", jid=jid)) < minions and not _ended.is_set():
        time.sleep(0.1)
    return jid


def _ask(kind: str, options: ClientOptions, minions: int) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    control = connect_control(options, context=context)
    # A job that is published before is not heard of.
    _listening.wait()
    while not _ended.is_set():
        with _lock:
            number = next(_numbers)
        began = time.monotonic()
        outcome: dict[str, str] = {}
        try:
            if kind == "publish":
                outcome["jid"] = _publish(control, "cmd.run", f"echo {number} >>/var/tmp/ran")
            else:
                outcome["jid"] = _answered(control, minions)
        except (ControlError, ControlTimeout) as error:
            outcome["error"] = str(error)
        _say(kind=kind, number=number, began=began, took=time.monotonic() - began, **outcome)
        _ended.wait(_PAUSE)
    control.close()
    context.term()


def _listen(options: ClientOptions) -> None:
    bus = connect_bus(options)
    bus.subscribe("salt/job/")
    if not bus.ready(_SUBSCRIBED):
        sys.stderr.write("the listener's subscription is not active\n")
        os._exit(1)
    _listening.set()
    while not _ended.is_set():
        if (event := bus.next(0.2)) is not None and event[0].endswith("/new"):
            _say(kind="event", began=time.monotonic(), jid=event[0].split("/")[2])
    bus.close()


def main() -> None:
    """Ask until stdin ends."""
    options = load_client(None)
    threads = [threading.Thread(target=_ask, args=(kind, options, int(sys.argv[1]))) for kind in _OPERATORS]
    threads.append(threading.Thread(target=_listen, args=(options,)))
    for one in threads:
        one.start()
    sys.stdin.read()
    _ended.set()
    for one in threads:
        one.join()


if __name__ == "__main__":
    main()
