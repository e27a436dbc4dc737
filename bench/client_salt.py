"""Times round trips of Salt's LocalClient, in Salt's own environment. ``client_salt.py CONFIG_DIR COUNT``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import salt.client


def main(config_dir: str, count: int) -> list[float]:
    """Run test.ping on two minions ``count`` times by Salt's LocalClient; return the seconds of each round trip."""
    client = salt.client.LocalClient(str(Path(config_dir) / "master"))
    times = []
    for _ in range(count):
        start = time.perf_counter()
        answers = client.cmd("*", "test.ping", timeout=5)
        times.append(time.perf_counter() - start)
        if len(answers) != 2:
            raise SystemExit(f"answers of {sorted(answers)} only")
    return times


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
