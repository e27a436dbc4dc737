"""The mine, in which minions publish values for other minions: Salt's ``mine`` execution module.

The master stores the values. Without a master (``file_client: local``) they are stored in a file of this minion.
Source: docs/execution.md#mine
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from statecore.host.content import data_files
from statecore.model.context import Context
from statecore.model.errors import InvocationError, NotAvailable

log = logging.getLogger(__name__)

#: Keys and version of a map that wraps a value with an access list. Salt: salt/utils/mine.py.
_GUARD, _GUARD_VERSION, _VALUE = "__saltmine_acl__", 1, "__data__"


@dataclass(frozen=True, slots=True)
class MineFunction:
    """One entry of the option ``mine_functions``: a function whose result the minion publishes in the mine, and its
    arguments.
    """

    #: Name of the function; empty if the entry's name is the function's name.
    function: str = ""
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    allow_tgt: object = None
    allow_tgt_type: object = None

    @classmethod
    def of(cls, definition: object) -> MineFunction:
        """Return the MineFunction that a definition in ``mine_functions`` describes: a map of keyword arguments, or
        a list of arguments and such maps. Raise InvocationError for any other definition.
        """
        entries = [definition] if isinstance(definition, Mapping) else definition
        if entries is None or entries == "":
            return cls()
        if not isinstance(entries, list):
            raise InvocationError(
                f"an entry of mine_functions must be a list or a map of arguments, not {definition!r}"
            )
        kwargs: dict[str, object] = {}
        for entry in entries:
            if isinstance(entry, Mapping):
                kwargs |= entry
        named = {name: kwargs.pop(name, None) for name in ("mine_function", "allow_tgt", "allow_tgt_type")}
        return cls(
            function=str(named["mine_function"] or ""),
            args=tuple(entry for entry in entries if not isinstance(entry, Mapping)),
            kwargs=kwargs,
            allow_tgt=named["allow_tgt"],
            allow_tgt_type=named["allow_tgt_type"],
        )

    def guarded(self, value: object) -> object:
        """Return the result of a mine function as it is stored in the mine: with ``allow_tgt``, wrapped in a map that
        names the minions that may read it.
        """
        if not self.allow_tgt:
            return value
        guard = {_VALUE: value, _GUARD: _GUARD_VERSION, "allow_tgt": self.allow_tgt}
        return guard | ({"allow_tgt_type": self.allow_tgt_type} if self.allow_tgt_type else {})


def update(ctx: Context, clear: bool = False, mine_functions: object = None) -> bool | None:
    """Call all mine functions and send their results to the master. Return whether the master stored them; None if
    there are no mine functions.

    A function that fails is logged and left out.

    clear
        True: delete this minion's other values from the mine
    mine_functions
        functions to call; default: the option ``mine_functions`` of configuration and pillar

    CLI Example:

        salt '*' mine.update
    """
    offers = _offers(ctx, mine_functions)
    if not offers:
        return None
    data = {}
    for name, offer in offers.items():
        function = offer.function or name
        try:
            data[name] = offer.guarded(ctx.call(function, *offer.args, **offer.kwargs))
        except NotAvailable as missing:
            log.error("Function %s in mine_functions not available: %s", function, missing)
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything, and must not stop the others
            log.error("Function %s in mine.update failed to execute: %s", function, error)
    return _store(ctx, data, clear=clear)


def send(ctx: Context, name: str, *args: object, **kwargs: object) -> bool:
    """Call a function and store its result in the mine under ``name``. Return True; False if the function fails.

    mine_function
        function to call, if ``name`` is not the function's name
    allow_tgt, allow_tgt_type
        target of the minions that may read the value

    CLI Example:

        salt '*' mine.send network.ip_addrs interface=eth0
        salt '*' mine.send eth0_ips mine_function=network.ip_addrs interface=eth0 allow_tgt='G@role:web' allow_tgt_type=compound
    """
    own = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    offer = MineFunction.of([*args, own])
    function = offer.function or name
    try:
        value = ctx.call(function, *offer.args, **offer.kwargs)
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything; as in Salt, the result is False
        log.error("Function %s in mine.send failed to execute: %s", function, error)
        return False
    return _store(ctx, {name: offer.guarded(value)})


def get(
    ctx: Context, tgt: object, fun: object, tgt_type: str = "glob", exclude_minion: bool = False
) -> dict[str, object]:
    """Return the mine values of other minions: a map of minion id to value. For several functions (a list, or text with
    commas): a map of function to such a map.

    Minions cannot be targeted by pillar, because the caller could find out what other minions' pillar holds.

    exclude_minion
        True: leave out this minion

    CLI Example:

        salt '*' mine.get '*' network.ip_addrs
        salt '*' mine.get 'os:Debian' network.ip_addrs,test.ping grain
    """
    if ctx.opts.get("file_client") == "local":
        return _own(ctx, tgt, fun, tgt_type)
    found = ctx.minion.ask_master("_mine_get", {"tgt": tgt, "fun": fun, "tgt_type": tgt_type})
    found = dict(found) if isinstance(found, Mapping) else {}
    if exclude_minion:
        found.pop(ctx.opts["id"], None)
        if not isinstance(fun, str) or "," in fun:
            found = {name: {k: v for k, v in values.items() if k != ctx.opts["id"]} for name, values in found.items()}
    return dict(found)


def delete(ctx: Context, fun: str) -> bool:
    """Delete one function's value of this minion from the mine. Return whether this succeeded.

    CLI Example:

        salt '*' mine.delete network.ip_addrs
    """
    if ctx.opts.get("file_client") == "local":
        kept = _kept(ctx)
        kept.pop(fun, None)
        return _keep(ctx, kept)
    return bool(ctx.minion.ask_master("_mine_delete", {"fun": fun}))


def flush(ctx: Context) -> bool:
    """Delete all values of this minion from the mine. Return whether this succeeded.

    CLI Example:

        salt '*' mine.flush
    """
    if ctx.opts.get("file_client") == "local":
        return _keep(ctx, {})
    return bool(ctx.minion.ask_master("_mine_flush", {}))


def valid(ctx: Context) -> dict[str, object] | None:
    """Return those entries of ``mine_functions`` whose functions exist on this minion, as a map of name in the mine to
    the entry's arguments. Return None if there are no entries.

    CLI Example:

        salt '*' mine.valid
    """
    offers = _offers(ctx, None)
    if not offers:
        return None
    configured = _configured(ctx)
    shown: dict[str, object] = {}
    for name, offer in offers.items():
        if (offer.function or name) not in ctx.functions:
            log.error("Function %s in mine_functions not available", offer.function or name)
        elif offer.function:
            shown[name] = {offer.function: [*offer.args, *({key: value} for key, value in offer.kwargs.items())]}
        else:
            shown[name] = configured[name]
    return shown


# --------------------------------------------------------------------------------------------- helpers


def _configured(ctx: Context) -> Mapping[str, object]:
    return _by_name(ctx.call("config.merge", "mine_functions", {}))


def _by_name(functions: object) -> Mapping[str, object]:
    """Return mine functions as a map of name to definition. A list of names gives functions without arguments. Raise
    InvocationError for any other value.
    """
    if isinstance(functions, Mapping):
        return functions
    if isinstance(functions, list) and all(isinstance(name, str) for name in functions):
        return {name: [] for name in functions}
    raise InvocationError(f"mine_functions must be a map of functions, or a list of their names, not {functions!r}")


def _offers(ctx: Context, given: object) -> dict[str, MineFunction]:
    functions = _by_name(given) if given else _configured(ctx)
    return {str(name): MineFunction.of(definition) for name, definition in functions.items()}


def _store(ctx: Context, data: Mapping[str, object], *, clear: bool = False) -> bool:
    if ctx.opts.get("file_client") == "local":
        return _keep(ctx, {**({} if clear else _kept(ctx)), **data})
    return bool(ctx.minion.ask_master("_mine", {"data": dict(data), "clear": clear}))


def _own(ctx: Context, tgt: object, fun: object, tgt_type: str) -> dict[str, object]:
    """Return the result of ``mine.get`` for a minion without a master, which only has its own values: {minion id:
    value}, or for several functions {function: {minion id: value}}. Return {} if the target does not match this minion.
    """
    functions = fun.split(",") if isinstance(fun, str) else fun
    if not isinstance(functions, list):
        raise InvocationError(
            f"fun must be a function name, names separated by commas, or a list of names, not {fun!r}"
        )
    if not ctx.call(f"match.{tgt_type}", tgt):
        return {}
    kept = _kept(ctx)
    values = {name: _plain(kept[name]) for name in functions if name in kept}
    mine = ctx.opts["id"]
    if isinstance(fun, str) and len(functions) == 1:
        return dict.fromkeys([mine], values[functions[0]]) if values else {}
    return {name: {mine: value} for name, value in values.items()}


def _plain(value: object) -> object:
    return value[_VALUE] if isinstance(value, Mapping) and _GUARD in value else value


def _file(ctx: Context) -> Path:
    return Path(str(ctx.opts["cachedir"])) / "mine"


def _kept(ctx: Context) -> dict[str, object]:
    kept = data_files.load(_file(ctx))
    return dict(kept) if isinstance(kept, Mapping) else {}


def _keep(ctx: Context, data: Mapping[str, object]) -> bool:
    data_files.store(_file(ctx), dict(data))
    return True
