"""The seconds that a worker may spend on each master command.

A worker that takes longer is ended, and another worker gets its request. After these times nobody waits for the answer: a stock
minion repeats a request after ``auth_timeout`` (5 s) or ``request_channel_timeout`` (60 s), three times, and a return after ten
seconds.
"""

from __future__ import annotations

from collections.abc import Mapping

from saltern.kit.config.master import ConfigError, MasterOptions

#: Command -> seconds. Other commands have the option ``request_deadline``.
DEADLINES: Mapping[str, int] = {
    # One signature and a few commands of Redis, two seconds each while Redis fails over. The minion repeats its request after five.
    "_auth": 20,
    "ping": 20,
    # One step in Redis for each return; the largest return takes a second.
    "_return": 30,
    "_minion_event": 30,
    "_mine": 30,
    "_serve_file": 30,
    "_file_hash": 30,
    # All backends are listed, perhaps for the first time.
    "_file_list": 120,
    "_file_list_emptydirs": 120,
    "_dir_list": 120,
    "_symlink_list": 120,
    # Renders templates and calls external pillars, which may take thirty seconds each (ext_pillar_timeout).
    "_pillar": 180,
    "_master_tops": 180,
    # A wheel function may fetch repositories and change every minion key.
    "wheel": 300,
}


def read_deadlines(options: MasterOptions) -> Mapping[str, int]:
    """Return {master command: seconds that a worker may spend on it}: the built-in values, replaced by those of the
    option ``request_deadlines``. Other commands have the option ``request_deadline``.

    Raises ConfigError if a value of these two options is less than one second.
    """
    for cmd, seconds in {**options.request_deadlines, "request_deadline": options.request_deadline}.items():
        if seconds < 1:
            raise ConfigError(f"request_deadlines: {cmd} must be a whole number of seconds from 1 up, not {seconds}")
    return {**DEADLINES, **options.request_deadlines}
