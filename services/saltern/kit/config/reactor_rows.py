"""Reads the option ``reactor`` (tag globs and reaction files), and finds which events must be kept in Redis.

The reactor runs the reactions; workers keep the events that the reactor reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias, TypeGuard

from saltern.kit.config.master import ConfigError, MasterOptions
from saltwire import tags
from statecore.model import yaml

#: Tag globs of the events from which an external job cache is made: jobs and returns.
JOB_TAGS = ("salt/job/*/new", "salt/job/*/ret/*")

#: Tag globs of the events about jobs, without returns.
LOAD_TAGS = JOB_TAGS[:1]

#: Values of ``master_job_cache`` and ``ext_job_cache`` that mean Redis: it is the job cache anyway. The first is Salt's default.
REDIS = ("local_cache", "redis", "salt_cache", "")

#: Maps of tag glob to reactor SLS files, in the configured order; a glob may occur twice.
Rows: TypeAlias = list[dict[str, str | list[str]]]


def rows_of(option: object) -> Rows:
    """Return the rows of the option ``reactor``, each as {tag glob: one reaction file or a list of them}.

    ``option`` is such a list, or the path of a YAML file that contains one. Raises ConfigError.
    """
    where = "reactor"
    if isinstance(option, str):
        where = option
        try:
            option = yaml.load(Path(option).read_bytes())
        except OSError as error:
            raise ConfigError(f"reactor: {where} cannot be read: {error.strerror}") from error
        except yaml.YamlFault as error:
            raise ConfigError(f"reactor: {where} is not valid YAML: {error.placed}") from error
    rows = [] if option is None else option
    if not isinstance(rows, list):
        raise ConfigError(f"{where}: must be a list of `tag glob: files`, not a {type(rows).__name__}")
    for row in rows:
        if not isinstance(row, Mapping) or not all(
            isinstance(tag, str) and is_files(files) for tag, files in row.items()
        ):
            raise ConfigError(f"{where}: {row!r} is no `tag glob: file or list of files`")
    return [dict(row) for row in rows]


def is_files(value: object) -> TypeGuard[str | list[str]]:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(name, str) for name in value))


def has_own_cache(options: MasterOptions) -> bool:
    """Return whether ``master_job_cache`` names a returner that stores jobs besides Redis."""
    return options.master_job_cache not in REDIS


def has_ext_cache(options: MasterOptions) -> bool:
    """Return whether ``ext_job_cache`` names a returner.

    Minions then send their returns to that returner, and the returner stores the jobs.
    """
    return options.ext_job_cache not in REDIS


def wanted_tags(options: MasterOptions) -> list[str]:
    """Return the tag globs of all events that the master must keep in Redis for its reactor and its job caches.

    Raises ConfigError.
    """
    reactor = [glob for row in rows_of(options.reactor) for glob in row]
    returned = (options.event_return_whitelist or ["*"]) if options.event_return else []
    cached = JOB_TAGS if has_own_cache(options) else LOAD_TAGS if has_ext_cache(options) else ()
    return sorted({*options.events_kept, *reactor, *returned, *cached, tags.REACTOR_ORDERS + "*"})
