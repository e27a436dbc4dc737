"""Reads from the master's options how safely Redis must have stored a job or a return before the master acknowledges it."""

from __future__ import annotations

from masterstore.durability import Durability
from saltern.kit.config.master import ConfigError, MasterOptions

#: Upper limit of redis_wait_ms, milliseconds: a connection to Redis waits 2000 ms for an answer.
_LONGEST_MS = 1500


def durability(options: MasterOptions) -> Durability:
    """Return the Durability (replicas, disk, time limit) that the master's options require of a write to Redis. Raises
    ConfigError for values out of range.
    """
    if options.redis_wait_replicas < 0:
        raise ConfigError(f"redis_wait_replicas: {options.redis_wait_replicas} is no number of replicas")
    if not 0 < options.redis_wait_ms <= _LONGEST_MS:
        raise ConfigError(f"redis_wait_ms: {options.redis_wait_ms} is not between 1 and {_LONGEST_MS} milliseconds")
    return Durability(options.redis_wait_replicas, options.redis_wait_aof, options.redis_wait_ms)
