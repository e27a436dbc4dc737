"""Functions of ``state`` that pause, resume or end a state run in progress."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from statecore.host.content import data_files
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.runtime.state_runs import pauses, state_queue


def get_pauses(
    ctx: Context, jid: str | int | Sequence[str | int] | None = None
) -> dict[str, dict[str, dict[str, object]]]:
    """Return the orders for paused state runs: a map of JID to {ID of a state, or ``__all__``: {``kill``, ``duration``
    in seconds}}.

    Orders of runs that have ended are deleted.

    CLI Example:

        salt '*' state.get_pauses
    """
    directory = _orders_directory(ctx)
    living = {entry.jid for entry in state_queue.others(ctx)}
    orders = {}
    for path in sorted(directory.glob("[0-9A-Za-z]*")):
        if path.name not in living:
            data_files.remove(path)
        elif jid is None or path.name in (map(str, jid) if isinstance(jid, list | tuple) else [str(jid)]):
            orders[path.name] = pauses.orders(directory, path.name)
    return orders


def pause(ctx: Context, jid: str | int, state_id: str | None = None, duration: float | None = None) -> None:
    """Pause a state run before a state, or without an ID before its next state. It continues after ``state.resume`` or
    after ``duration`` seconds. Return None.

    Raise CommandError if no such run is in progress.

    CLI Example:

        salt '*' state.pause 20171130110407769519 vim 20
    """
    if duration is not None and (isinstance(duration, bool) or not isinstance(duration, int | float) or duration < 0):
        raise InvocationError(f"'duration' must be a number of seconds, not {duration!r}")
    _tell(ctx, jid, state_id, {"duration": duration} if duration else {})


def soft_kill(ctx: Context, jid: str | int, state_id: str | None = None) -> None:
    """End a state run before a state, or without an ID before its next state. The state that is being applied finishes.
    Return None.

    Raise CommandError if no such run is in progress.

    CLI Example:

        salt '*' state.soft_kill 20171130110407769519 vim
    """
    _tell(ctx, jid, state_id, {"kill": True})


def resume(ctx: Context, jid: str | int, state_id: str | None = None) -> None:
    """Delete the pause order for a state of a state run, or without an ID all orders of the run, so that a paused run
    continues. Return None.

    CLI Example:

        salt '*' state.resume 20171130110407769519
    """
    directory, name = _orders_directory(ctx), _checked(jid)
    orders = pauses.orders(directory, name)
    orders.pop(_key(state_id), None)
    if state_id is None or not orders:
        data_files.remove(directory / name)
    else:
        pauses.give(directory, name, orders)


def rm_pause(ctx: Context, jid: str | int, state_id: str | None = None) -> None:
    """Delete the pause order for a state of a state run, or without an ID all its orders, so that a paused run
    continues. The function is the same as ``state.resume``. Return None.
    """
    resume(ctx, jid, state_id)


def _tell(ctx: Context, jid: str | int, state_id: str | None, order: dict[str, object]) -> None:
    directory, name = _orders_directory(ctx), _checked(jid)
    living = [entry.jid for entry in state_queue.others(ctx)]
    if name not in living:
        raise CommandError(
            f"No state run with the job id {name} is in progress; there is {', '.join(living) or 'none at all'}"
        )
    orders, key = pauses.orders(directory, name), _key(state_id)
    pauses.give(directory, name, {**orders, key: {**orders.get(key, {}), **order}})


def _key(state_id: str | None) -> str:
    return pauses.ANY if state_id is None else str(state_id)


def _checked(jid: str | int) -> str:
    name = str(jid)
    if isinstance(jid, bool) or not isinstance(jid, str | int) or not data_files.is_plain(name):
        raise InvocationError(f"'jid' must be the id of a job such as 20171130110407769519, not {jid!r}")
    return name


def _orders_directory(ctx: Context) -> Path:
    cachedir = ctx.opts.get("cachedir")
    if not cachedir:
        raise CommandError("There is no directory for the orders to state runs: set 'cachedir'")
    return pauses.directory(str(cachedir))
