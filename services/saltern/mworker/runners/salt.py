"""Runner ``salt``: execution functions that run on the master itself or on minions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from saltern.kit.config.master import as_opts
from saltern.kit.trees.served_files import file_server
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.model.text_lines import lines_of
from statecore.runtime.runtime import local_runtime


def cmd(tools: RunnerTools, fun: str, *args: object, **kwargs: object) -> object:
    """Run an execution function on the master itself, in the worker's container, and return its result. Raises
    RunnerFault if the function fails with an error text.

    with_pillar
        ``True``: the function sees the pillar of the master's own id
    """
    with_pillar = bool(kwargs.pop("with_pillar", False))
    own = {"cachedir": "", "mirrors_dir": tools.options.cachedir}
    opts = as_opts(tools.options, file_client="local", **own)
    returned = local_runtime(opts, files=file_server(tools.options), pillar=None if with_pillar else {}).call(
        fun, args, kwargs
    )
    if not returned.success and isinstance(returned.value, str):
        raise RunnerFault(returned.value)
    return returned.value


def wol(tools: RunnerTools, mac: str, bcast: str = "255.255.255.255", destport: int = 9) -> bool:
    """Wake up a machine by its hardware address (``network.wol``). The packet is sent from the worker's network."""
    return bool(cmd(tools, "network.wol", mac, bcast, destport))


def wollist(tools: RunnerTools, maclist: str, bcast: str = "255.255.255.255", destport: int = 9) -> list[str]:
    """Wake up the machines whose hardware addresses are in a file of the worker, one a line; return the addresses."""
    try:
        macs = [line.strip() for line in lines_of(Path(maclist).read_text("utf-8")) if line.strip()]
    except (OSError, ValueError) as error:
        raise RunnerFault(f"network.wollist: {maclist} cannot be read: {error}") from error
    return [mac for mac in macs if wol(tools, mac, bcast, destport)]


def wolmatch(
    tools: RunnerTools, tgt: object, tgt_type: str = "glob", bcast: str = "255.255.255.255", destport: int = 9
) -> list[str]:
    """Wake up minions by the addresses in their stored grains (``hwaddr_interfaces``); return the addresses."""
    kept = tools.store.cache.all_grains()
    interfaces = [kept.get(minion, {}).get("hwaddr_interfaces") for minion in tools.minions(tgt, tgt_type)]
    found = [
        str(mac).strip()
        for addresses in interfaces
        if isinstance(addresses, Mapping)
        for interface, mac in addresses.items()
        if interface != "lo"
    ]
    return [mac for mac in found if wol(tools, mac, bcast, destport)]


def query(tools: RunnerTools, url: str, **kwargs: object) -> object:
    """Send a request to a web server (``http.query``) from the worker's network, and return the result."""
    return cmd(tools, "http.query", url, **kwargs)


def update_ca_bundle(
    tools: RunnerTools, target: str | None = None, source: str | None = None, merge_files: object = None
) -> None:
    """Download a bundle of certificate authorities and write it on the worker's machine (``http.update_ca_bundle``).

    target
        path of the bundle; default: the option ``ca_bundle``, else the first known path that exists
    source
        https URL of the bundle; default: the option ``ca_bundle_url``
    merge_files
        a path, or a list of paths, of PEM files to append
    """
    cmd(tools, "http.update_ca_bundle", target, source, merge_files)


def execute(
    tools: RunnerTools,
    tgt: object,
    fun: str,
    arg: Sequence[object] = (),
    timeout: float | None = None,
    tgt_type: str = "glob",
    ret: str = "",
    jid: str = "",
    kwarg: Mapping[str, object] | None = None,
    **kwargs: object,
) -> dict[str, object]:
    """Run an execution function on minions and return {minion: return}.

    jid
        the JID of the job, for callers that must know it beforehand
    kwarg
        named arguments of the function; all further named arguments are passed to the function, too
    """
    named = {**kwargs, **(kwarg or {})}
    asked = tools.ask(tgt, tgt_type, fun, arg, named, timeout=timeout, ret=ret, jid=str(jid))
    return {minion: load.get("return") for minion, load in asked.answers().items()}
