"""Call of one state function: check of the chunk, guards, the call, and a check of the function's return. Never raises.

Faults of the user (unknown function, unknown argument, missing parameter) are found before the host is changed; their
comment names the file and line of the SLS. An exception becomes a failed state with a short reason, and its traceback
is logged.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from statecore.engine import guard, unknown_arguments
from statecore.engine.apply import settle
from statecore.engine.arguments import complaint
from statecore.engine.report import text
from statecore.engine.slots import resolve
from statecore.loader import Loader
from statecore.loader.ignored_arguments import refuses_unknown
from statecore.loader.loaded_module import LoadedModule
from statecore.loader.providers import chosen
from statecore.loader.tables import attached
from statecore.model import redaction
from statecore.model.context import Context
from statecore.model.errors import Mark, NotAvailable, StatecoreError, StateFailure, place_in_module
from statecore.model.log_levels import unlogged
from statecore.model.types import Low, Plan

log = logging.getLogger(__name__)

#: (chunk, argument or "") -> place in the user's SLS file, or None. Called only for errors.
Locate = Callable[[Low, str], Mark | None]

#: Keys that every state return must have.
_REQUIRED = ("name", "result", "changes", "comment")


def call_state(low: Low, ctx: Context, loader: Loader, locate: Locate) -> dict[str, object]:
    """Call the state function of one low chunk and return its state return (``name``, ``changes``, ``result``,
    ``comment``, ...).

    ``ctx`` is the Context made for this chunk. ``locate(low, argument)`` returns the Mark (file and line) of an
    argument in the user's SLS file.
    """
    full = f"{low['state']}.{low['fun']}"
    if low.get("provider"):
        try:
            ctx = attached(replace(ctx, opts=chosen(ctx.opts, low["state"], low["provider"])), loader, finish)
        except ValueError as error:
            return _failed(low, str(error) + _place(low, locate, "provider"))
    try:
        served, function = loader.function("states", full, ctx)
    except NotAvailable as missing:
        return _failed(low, _not_found(low, full, missing, loader, ctx, locate))
    arguments = unknown_arguments.bound(low, served, function)
    warnings: list[str] = []
    if arguments.unknown and unknown_arguments.are_ignored(low, served, ctx.opts):
        warnings = unknown_arguments.warnings(low, arguments, locate)
        arguments = arguments._replace(unknown=None)
    if arguments.missing or arguments.unknown or arguments.wrong:
        wrong = complaint(arguments, full, low if served.native and refuses_unknown(full) else None)
        at = next(iter(arguments.unknown or arguments.wrong or ()), "")
        return _warned(_failed(low, wrong + _place(low, locate, at)), warnings)
    return _warned(_outcome(low, ctx, served, function, arguments.values, full, locate), warnings)


def _warned(entry: dict[str, object], warnings: list[str]) -> dict[str, object]:
    """Put ``warnings`` before the warnings that a state return has already. The return is changed in place and
    returned.
    """
    if warnings:
        own = entry.get("warnings")
        entry["warnings"] = [*warnings, *(own if isinstance(own, list) else [])]
    return entry


def _outcome(
    low: Low,
    ctx: Context,
    served: LoadedModule,
    function: str,
    arguments: Mapping[str, object],
    full: str,
    locate: Locate,
) -> dict[str, object]:
    """Call the state function with its guards and return the state return. Exceptions become failed returns."""
    mark = unlogged.set(True) if redaction.is_hidden(low) else None
    try:
        return _guarded(low, ctx, served, function, arguments)
    except StateFailure as failure:
        return {**_failed(low, failure.comment), "changes": dict(failure.changes)}
    except StatecoreError as error:
        log.debug("state %s failed", full, exc_info=not redaction.is_hidden(low))
        return _failed(low, f"An exception occurred in this state: {error}\n    in {full}" + _place(low, locate))
    except OSError as error:
        # Not permitted, not a directory, input/output error: faults of the host, not of the state. No traceback.
        where = error.filename if error.filename is not None else low["name"]
        return _failed(low, f"{where}: {error.strerror or error}" + _place(low, locate))
    except Exception as error:
        hidden = redaction.is_hidden(low)
        log.error("Unexpected exception in state %s (ID %s)", full, redaction.shown_id(low), exc_info=not hidden)
        brief = f"{type(error).__name__}: {error}{place_in_module(error)}"
        return _failed(low, f"An exception occurred in this state: {brief}\n    in {full}" + _place(low, locate))
    finally:
        if mark is not None:
            unlogged.reset(mark)


def finish(ctx: Context, full: str, returned: object, arguments: Mapping[str, object]) -> object:
    """Finish a state function that another state called: apply its Plan, or describe the Plan in test mode.

    A return that is not a Plan is returned unchanged.
    """
    if isinstance(returned, Plan):
        return settle(returned, arguments.get("name"), test=ctx.test)
    return returned


def _guarded(
    low: Low, ctx: Context, served: LoadedModule, function: str, arguments: Mapping[str, object]
) -> dict[str, object]:
    verdict = guard.guards(low, ctx) if "mod_run_check" not in served.functions else None
    if verdict is not None and verdict.skip:
        outcome: dict[str, object] = {
            "name": low["name"],
            "changes": {},
            "result": True,
            "comment": verdict.comment,
            "skip_watch": True,
        }
    elif guard.excluded(low, ctx):
        comment = "Failed to meet global state conditions. State not called."
        outcome = {"name": low["name"], "changes": {}, "result": None, "comment": comment}
    else:
        outcome = _called(low, ctx, served, function, arguments)
    if "check_cmd" in low and not (_checks_itself(served, function) or ctx.test or ctx.opts.get("mocked")):
        # In test mode nothing was applied, so check_cmd would fail. (Salt runs it anyway and reports a failure.)
        outcome["result"], outcome["comment"] = guard.check_cmd(low, ctx)
    return outcome


def _called(
    low: Low, ctx: Context, served: LoadedModule, function: str, arguments: Mapping[str, object]
) -> dict[str, object]:
    if ctx.opts.get("mocked"):
        return {"name": low["name"], "changes": {}, "result": True, "comment": "Not called, mocked"}
    _, values = resolve([], arguments, ctx)
    with _umask(low["umask"]) if low.get("umask") is not None else _KEPT:
        returned = served.call(function, ctx, values)
        if isinstance(returned, Plan):
            shown = partial(redaction.shown_text, low) if redaction.is_hidden(low) else str
            return settle(returned, values.get("name", low["name"]), test=ctx.test, shown=shown)
    return _regular(low, returned)


def _checks_itself(served: LoadedModule, function: str) -> bool:
    return "check_cmd" in served.parameters(function).named


def _regular(low: Low, returned: object) -> dict[str, object]:
    """Check the value that a state function returned. Return it as a state return with its comment as text and its
    result as True, False or None; a failed state return if it is malformed.
    """
    if not isinstance(returned, dict):
        wrong = "Malformed state return. Data must be a dictionary type."
    elif not isinstance(returned.get("changes"), dict):
        wrong = "Malformed state return. 'Changes' should be a dictionary."
    elif missing := [key for key in _REQUIRED if key not in returned]:
        wrong = f"The following keys were not present in the state return: {', '.join(missing)}."
    else:
        result = returned["result"]
        return {
            **returned,
            "result": None if result is None else bool(result),
            "comment": text(returned["comment"]),
        }
    return _failed(low, f"An exception occurred in this state: {wrong}\n    in {low['state']}.{low['fun']}")


def _failed(low: Low, comment: str) -> dict[str, object]:
    return {"name": low["name"], "changes": {}, "result": False, "comment": comment}


def _not_found(low: Low, full: str, missing: NotAvailable, loader: Loader, ctx: Context, locate: Locate) -> str:
    where = f" in SLS '{low['__sls__']}'" if low.get("__sls__") else ""
    near = loader.nearest("states", full, ctx)
    hint = f"\nDid you mean '{near}'?" if near else ""
    return f"State '{full}' was not found{where}\nReason: {missing}{hint}{_place(low, locate)}"


def _place(low: Low, locate: Locate, argument: str = "") -> str:
    mark = locate(low, argument)
    return f"\n    at {mark}" if mark is not None else ""


#: Context manager for states without ``umask``.
_KEPT = contextlib.nullcontext()


@contextlib.contextmanager
def _umask(value: object) -> Iterator[None]:
    """Set the chunk's ``umask`` while the block runs.

    It is octal, as text or as YAML's number. Raises StateFailure if malformed.
    """
    try:
        mask = int(str(value), 8)
    except ValueError:
        raise StateFailure(f"Invalid umask: {value}") from None
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
