"""Times round trips in one running client: publish a job and receive both returns. ``client_saltern CONFIG_DIR COUNT``."""

from __future__ import annotations

import json
import os
import sys
import time

import zmq

from saltern.kit.config.master import load_client
from saltern.kit.links.control import connect_control
from saltern.kit.links.event_bus import connect_bus
from saltwire import tags


def main(config_dir: str, count: int) -> list[float]:
    """Run test.ping on both minions ``count`` times over one connection; return the seconds of each round trip."""
    options = load_client(config_dir)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    control = connect_control(options, config_dir=config_dir, context=context)
    bus = connect_bus(options, config_dir=config_dir, context=context)
    bus.subscribe("salt/job/")
    if not bus.ready(5):
        raise SystemExit("the event bus does not answer")
    times = []
    for _ in range(count):
        start = time.perf_counter()
        request = os.urandom(16).hex()
        job = control.call("publish", tgt="*", tgt_type="glob", fun="test.ping", arg=[], kwargs={}, request_id=request)
        waiting = {tags.job_ret(job["jid"], minion) for minion in job["minions"]}
        while waiting:
            event = bus.next(5)
            if event is None:
                raise SystemExit(f"no return from {waiting} within 5 s")
            waiting.discard(event[0])
        times.append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
