"""Gathering of grains from all sources.

Sources in order, as in Salt: built-in grains, users' grain modules (``_grains``), the static grains file, the option
``grains``. A grain of a later source replaces that of an earlier one; with the option ``grains_deep_merge`` maps are
merged.
"""

from __future__ import annotations

import copy
import fnmatch
import inspect
import logging
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from statecore.loader import LoadedModule, Loader
from statecore.model.context import Context
from statecore.model.errors import StatecoreError
from statecore.model.ports import ManagedHost
from statecore.model.values import update
from statecore.system import static_grains

log = logging.getLogger(__name__)

#: Grain -> Salt's grains file that has it. Salt's file ``core`` has all others.
_FILES: Mapping[str, str] = {
    **dict.fromkeys(("disks", "ssds"), "disks"),
    **dict.fromkeys(("efi", "efi-secure-boot", "shell", "transactional"), "extra"),
    "mdadm": "mdadm",
    **dict.fromkeys(("gid", "groupname", "pid", "uid", "username"), "minion_process"),
}

#: Grains that Salt does not have; no users' file replaces them.
_OURS = ("host_root",)


def gather(
    host: ManagedHost, opts: Mapping[str, object], loader: Loader, bare: Callable[[Mapping[str, object]], Context]
) -> dict[str, object]:
    """Return all grains of a host as a map of name to value.

    ``bare(grains)`` returns a context with these grains, for loading modules. A source that raises is logged, and its
    grains are left out.
    """
    started = time.monotonic()
    grains: dict[str, object] = {}
    ctx = bare(grains)
    native = [source for source in loader.sources("grains") if source.native]
    custom = [source for source in loader.sources("grains") if not source.native]
    custom.sort(key=lambda source: source.stem != "core")
    salts = [source for source in custom if source.stem in ("core", *_FILES.values())]
    usable = {source.stem for source in salts if isinstance(loader.load(source, ctx), LoadedModule)}
    deep = bool(opts.get("grains_deep_merge"))
    # As in Salt the blacklist does not apply to grains of the configuration.
    blacklist = opts.get("grains_blacklist")
    barred = [str(each) for each in blacklist] if isinstance(blacklist, list | tuple) else []
    add = partial(_add, grains, deep=deep, barred=barred)
    for source in native:
        for function in _functions(loader.load(source, ctx)):
            add(f"{source.stem}.{function.__name__}", partial(_not_replaced, partial(function, host, opts), usable))
    if opts.get("id"):
        grains["id"] = opts["id"]
    for source in custom:
        served = loader.load(source, ctx)
        if isinstance(served, LoadedModule):
            for name, function in served.functions.items():
                bound = served.bound(name, bare(grains))
                add(str(source.path), partial(_call_custom, bound, function, grains))
    file = static_grains.path(opts)
    if file is not None:
        add(str(file), lambda: static_grains.read(file))
    _add(grains, "the option 'grains'", lambda: opts.get("grains") or {}, deep=deep)
    if opts.get("id"):
        grains["id"] = opts["id"]
    log.debug("Gathered %d grains in %.1f ms", len(grains), (time.monotonic() - started) * 1000)
    return grains


def _means(expression: str, name: str) -> bool:
    """Return True if a row of ``grains_blacklist`` matches the grain's name, as a glob or as a regular expression of
    the whole name.
    """
    try:
        return fnmatch.fnmatchcase(name, expression) or re.fullmatch(expression, name) is not None
    except re.error:
        return False


def _not_replaced(ask: Callable[[], object], files: Collection[str]) -> object:
    """Call a built-in grains function and return its grains without those that users' files replace.

    ``files`` are the names of users' grains files. As in Salt, ``_grains/core.py`` replaces all core grains.
    """
    found = ask()
    if not files or not isinstance(found, Mapping):
        return found
    return {name: value for name, value in found.items() if name in _OURS or _FILES.get(name, "core") not in files}


def _functions(loaded: object) -> list[Callable[..., object]]:
    return list(loaded.functions.values()) if isinstance(loaded, LoadedModule) else []


def _call_custom(call: Callable[..., object], own: Callable[..., object], grains: dict[str, object]) -> object:
    """Call a user's grain function and return its result. It gets the grains so far if it has the parameter ``grains``."""
    return call(grains) if "grains" in inspect.signature(own).parameters else call()


def _add(
    grains: dict[str, object], source: str, ask: Callable[[], object], *, deep: bool, barred: Sequence[str] = ()
) -> None:
    try:
        found = ask()
    except StatecoreError as error:
        log.error("Grains of %s are left out: %s", source, error)
        return
    except Exception:
        log.exception("Grains of %s are left out: unexpected exception", source)
        return
    if isinstance(found, Mapping):
        found = {name: value for name, value in found.items() if not any(_means(each, str(name)) for each in barred)}
        if deep:
            update(grains, found)
        else:
            grains.update(copy.deepcopy(dict(found)))
    elif found is not None:
        log.error("Grains of %s are left out: a map was expected, not a %s", source, type(found).__name__)
