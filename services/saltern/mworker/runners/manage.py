"""Runners about minions: which answer, which are connected, which version they have; and regeneration of their keys."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence

from saltern.mworker.fleet import rows_of, topology_of
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.model.salt_version import both_versions, compared


def status(
    tools: RunnerTools,
    output: bool = True,
    tgt: object = "*",
    tgt_type: str = "glob",
    timeout: float | None = None,
    gather_job_timeout: float | None = None,
) -> dict[str, list[str]]:
    """Ping minions: {"up": minions that answer, "down": accepted minions that do not}. Fails if the target matches no
    minion.

    timeout, gather_job_timeout
        seconds; default: the master's options of these names
    """
    job = tools.ask(tgt, tgt_type, "test.ping", timeout=timeout, gather_timeout=gather_job_timeout)
    # A master without minions is no error for the target `*`; other targets must match.
    returns = job.returns if tgt == "*" else job.answers()
    return {"up": sorted(returns), "down": sorted(set(job.expected) - returns.keys())}


def up(
    tools: RunnerTools,
    tgt: object = "*",
    tgt_type: str = "glob",
    timeout: float | None = None,
    gather_job_timeout: float | None = None,
) -> list[str]:
    """Return the ids of the targeted minions that answer a ping."""
    return status(tools, True, tgt, tgt_type, timeout, gather_job_timeout)["up"]


def down(
    tools: RunnerTools,
    removekeys: bool = False,
    tgt: object = "*",
    tgt_type: str = "glob",
    timeout: float | None = None,
    gather_job_timeout: float | None = None,
) -> list[str]:
    """Return the ids of accepted minions that do not answer a ping; with ``removekeys`` their keys are deleted."""
    silent = status(tools, True, tgt, tgt_type, timeout, gather_job_timeout)["down"]
    if removekeys and silent:
        tools.control.call("wheel", fun="key.delete", user=tools.user, kwarg={"match": silent})
    return silent


def present(tools: RunnerTools, subset: object = None, show_ip: bool = False) -> list[str]:
    """Return the accepted minions that sent a request to the master in the last ``presence_window`` seconds. Nothing is
    sent to minions.

    subset
        minions, as a list or separated by commas: only these are checked
    """
    if show_ip:
        raise RunnerFault("not supported: show_ip. The master does not keep the addresses of its minions")
    since = int((time.time() - tools.options.presence_window) * 1000)
    return _of(subset, tools.store.presence.present(since) & set(tools.store.minion_keys.ids("accepted")))


def not_present(tools: RunnerTools, subset: object = None, show_ip: bool = False) -> list[str]:
    """Return the accepted minions that sent no request to the master in the last ``presence_window`` seconds."""
    here = set(present(tools, show_ip=show_ip))
    return _of(subset, set(tools.store.minion_keys.ids("accepted")) - here)


def versions(tools: RunnerTools) -> dict[str, object]:
    """Compare the versions of minions with the master's. Return {"Master": version, "Up to date": {minion: version},
    ...}, with a map of minions for each result of the comparison.

    As on a stock master, the release of Salt is compared; for Saltern's minions the version of Saltern is compared,
    too. So stock minions and Saltern's minions may be mixed.
    """
    own = both_versions()
    job = tools.ask("*", "glob", "test.version")
    found: dict[str, dict[str, object]] = {}
    for minion in job.expected:
        load = job.returns.get(minion)
        version = None if load is None or load.get("retcode") else str(load.get("return"))
        found.setdefault(_label(version, own), {})[minion] = version if version is not None else False
    return {"Master": own, **found}


def _label(version: str | None, own: str) -> str:
    if version is None:
        return "Minion offline"
    (salt, saltern), (our_salt, our_saltern) = compared(version), compared(own)
    # A stock minion of the same release is up to date.
    theirs, ours = (salt, saltern or our_saltern), (our_salt, our_saltern)
    if theirs == ours:
        return "Up to date"
    return "Minion newer than master" if theirs > ours else "Minion requires update"


def fleet(tools: RunnerTools, tgt: object = "*", tgt_type: str = "glob") -> list[dict[str, object]]:
    """Return a row for each accepted minion that a target matches: id, seen (milliseconds since 1970), present, and some
    grains. Nothing is sent to minions.

    CLI Example:

        salt-run manage.fleet 'G@os:Debian and not web*' compound
    """
    return rows_of(tools.store, tools.minions(tgt, tgt_type), tools.options.presence_window)


def topology(tools: RunnerTools) -> dict[str, object]:
    """Return the parts of the master: Redis and its clients, reqservers with their queues, publishers, the reactors'
    backlog, and the numbers of minions and jobs.

    CLI Example:

        salt-run manage.topology
    """
    return topology_of(tools.store, tools.options.id, tools.options.presence_window)


def key_regen(tools: RunnerTools) -> str:
    """Let all minions create new keys, and delete their present keys on the master. Return a text that says what to do next.

    Each minion then signs in again and waits until its new key is accepted.
    """
    job = tools.ask("*", "glob", "saltutil.regen_keys", timeout=1)
    tools.control.call("wheel", fun="key.delete", user=tools.user, kwarg={"match": "*"})
    return (
        f"{len(job.expected)} minions were told to make new keys, and all keys are deleted. They wait for acceptance within a"
        " minute or so: salt-key -A. Minions that were away must be restarted without their old key."
    )


def bootstrap(tools: RunnerTools, *args: object, **kwargs: object) -> None:
    """Not supported: it would install minions over salt-ssh, which Saltern does not have."""
    raise RunnerFault(
        "not supported: minions are not installed from here, there is no salt-ssh; see docs/containers.md"
    )


def _of(subset: object, minions: Iterable[str]) -> list[str]:
    wanted = _names(subset)
    return sorted(minion for minion in minions if wanted is None or minion in wanted)


def _names(subset: object) -> Collection[str] | None:
    if subset is None:
        return None
    if isinstance(subset, str):
        return [name.strip() for name in subset.split(",")]
    if not isinstance(subset, Sequence):
        raise RunnerFault(f"subset must be a list of minions, not {type(subset).__name__}")
    return [str(name) for name in subset]
