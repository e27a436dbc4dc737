"""How durable a job or a return must be before it is acknowledged, as the options say."""

from __future__ import annotations

from masterstore.durability import Durability
from saltern.kit.config.master import ConfigError, MasterOptions

#: A connection to Redis waits two seconds for an answer.
_LONGEST_MS = 1500


def durability(options: MasterOptions) -> Durability:
    """Raises ConfigError for what cannot be waited for."""
    if options.redis_wait_replicas < 0:
        raise ConfigError(f"redis_wait_replicas: {options.redis_wait_replicas} is no number of replicas")
    if not 0 < options.redis_wait_ms <= _LONGEST_MS:
        raise ConfigError(f"redis_wait_ms: {options.redis_wait_ms} is not between 1 and {_LONGEST_MS} milliseconds")
    return Durability(options.redis_wait_replicas, options.redis_wait_aof, options.redis_wait_ms)
