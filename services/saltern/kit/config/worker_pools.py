"""Pools of workers and the commands that each takes (``worker_pools``, ``worker_pools_enabled``).

The rules are those of Salt's config/worker_pools.py. All violations are reported together.
Source: docs/execution.md#mworkers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from saltern.kit.config.master import ConfigError, MasterOptions
from statecore.model.nearest import close_matches

#: Name of the only pool, if the configuration defines none.
ONLY = "default"

#: Stands for all commands that no pool lists.
REST = "*"

_SETTINGS = ("worker_count", "commands")


@dataclass(frozen=True)
class Pools:
    """The worker pools of a master: the number of workers of each pool, and the commands that each pool takes."""

    #: Pool -> number of its workers (option ``worker_count``), in the order of the configuration.
    workers: Mapping[str, int]
    #: Command -> pool, for commands that a pool lists.
    named: Mapping[str, str]
    #: The pool of all other commands.
    rest: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all worker pools, in the order of the configuration."""
        return tuple(self.workers)

    @property
    def several(self) -> bool:
        """Return whether there is more than one worker pool, so that a request's command must be known before it is queued."""
        return len(self.workers) > 1

    def of(self, cmd: str) -> str:
        """Return the name of the worker pool that takes a master command such as ``_return``."""
        return self.named.get(cmd, self.rest)


ONE_POOL = Pools({ONLY: 1}, {}, ONLY)


def read_pools(options: MasterOptions) -> Pools:
    """Return the worker pools that the master's options define. Raises ConfigError whose message lists every error."""
    given = options.worker_pools
    if not options.worker_pools_enabled or not given:
        return ONE_POOL
    wrong = [f"  {line}" for line in _wrong(given)]
    if wrong:
        raise ConfigError("\n".join(["worker_pools:", *wrong]))
    named = {cmd: pool for pool, row in given.items() for cmd in row["commands"]}
    return Pools({pool: row["worker_count"] for pool, row in given.items()}, named, named[REST])


def own_pool(options: MasterOptions, pools: Pools) -> str:
    """Return the pool of this worker process (option ``worker_pool``), "" if the option is not set.

    Raises ConfigError if no such pool exists.
    """
    name = options.worker_pool
    if name and name not in pools.workers:
        near = close_matches(name, pools.names, n=1)
        nearest = f"; the nearest is '{near[0]}'" if near else ""
        raise ConfigError(f"worker_pool: worker_pools has no pool '{name}', but {', '.join(pools.names)}{nearest}")
    return name


def unknown_commands(pools: Pools, known: frozenset[str]) -> list[str]:
    """Return one sentence for each command name in the worker pools that is no command of the master (``known``)."""
    problems = []
    for cmd, pool in pools.named.items():
        if cmd != REST and cmd not in known:
            near = close_matches(cmd, sorted(known), n=1)
            problems.append(
                f"pool '{pool}': there is no command '{cmd}'" + (f"; the nearest is '{near[0]}'" if near else "")
            )
    return problems


def _wrong(given: Mapping[str, object]) -> Iterator[str]:
    taken: dict[str, str] = {}
    for pool, row in given.items():
        if why := _wrong_name(pool):
            yield why
        elif not isinstance(row, dict):
            yield f"pool '{pool}' must be a map of {' and '.join(_SETTINGS)}, not {row!r}"
        else:
            yield from _wrong_row(pool, row, taken)
    if REST not in taken:
        yield f"no pool has the command '{REST}': one must take what no other names"


def _wrong_name(pool: object) -> str:
    if not isinstance(pool, str) or not pool:
        return f"a pool's name is text, not {pool!r}"
    # As in Salt, where the names of pools are parts of file paths.
    barred = any(mark in pool for mark in ("/", "\\", "\0")) or pool == ".."
    return f"the pool's name {pool!r} must be no path" if barred else ""


def _wrong_row(pool: str, row: Mapping[object, object], taken: dict[str, str]) -> Iterator[str]:
    for setting in row.keys() - set(_SETTINGS):
        near = close_matches(str(setting), _SETTINGS, n=1)
        yield f"pool '{pool}': unknown setting '{setting}'" + (f"; the nearest is '{near[0]}'" if near else "")
    count = row.get("worker_count")
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        yield f"pool '{pool}': worker_count must be a whole number from 1 up, not {count!r}"
    commands = row.get("commands")
    if not isinstance(commands, list) or not commands:
        yield f"pool '{pool}': commands must be a list with at least one command, not {commands!r}"
        return
    for cmd in commands:
        if not isinstance(cmd, str):
            yield f"pool '{pool}': a command is text, not {cmd!r}"
        elif cmd in taken:
            yield f"the command '{cmd}' is in the pools '{taken[cmd]}' and '{pool}'; it must be in one"
        else:
            taken[cmd] = pool
