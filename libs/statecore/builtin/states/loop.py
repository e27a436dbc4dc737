"""Salt's ``loop`` states: call an execution function again and again until its return fits."""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import StatecoreError
from statecore.model.types import Outcome, Plan, Step


def until(
    ctx: Context,
    name: str,
    m_args: Sequence[object] | None = None,
    m_kwargs: Mapping[str, object] | None = None,
    condition: str | None = None,
    period: float = 1,
    timeout: float = 60,
) -> Plan:
    """Call the execution function ``name`` until ``condition`` is true. The state fails after ``timeout`` seconds, or
    if the function or the condition raises an error.

    m_args, m_kwargs
        arguments of the function
    condition
        Python expression with the function's return as ``m_ret``; it also knows ``__grains__``, ``__opts__``, ``__pillar__``
        and ``__salt__``
    period
        seconds between two calls
    timeout
        seconds after which the state fails
    """
    if name not in ctx.functions:
        return Plan.failed(f"Cannot find module {name}")
    if condition is None:
        return Plan.failed("An exit condition must be specified")
    if wrong := _wrong_times(period, timeout):
        return Plan.failed(wrong)
    try:
        code = compile(str(condition), f"condition of loop.until {name}", "eval")
    except SyntaxError as error:
        return Plan.failed(f"condition is no Python expression: {error}")

    def holds() -> bool:
        answer = ctx.asked(name, *(m_args or ()), **(m_kwargs or {}))
        names = {"__grains__": ctx.grains, "__opts__": ctx.opts, "__pillar__": ctx.pillar, "__salt__": ctx.functions}
        return bool(eval(code, {**names, "m_ret": answer}))

    def work() -> Outcome:
        try:
            met = _repeated(holds, period, timeout)
        except (
            StatecoreError,
            ArithmeticError,
            LookupError,
            TypeError,
            ValueError,
            NameError,
            AttributeError,
        ) as error:
            return Outcome(f"Condition {condition} cannot be checked: {type(error).__name__}: {error}", ok=False)
        if met:
            return Outcome(f"Condition {condition} was met")
        return Outcome(f"Timed out while waiting for condition {condition}", ok=False)

    return Plan.change(f"The execution module {name} will be run", [Step(f"call {name} until {condition}", work)])


def until_no_eval(
    ctx: Context,
    name: str,
    expected: object,
    compare_operator: str = "eq",
    timeout: float = 60,
    period: float = 1,
    init_wait: float = 0,
    args: Sequence[object] | None = None,
    kwargs: Mapping[str, object] | None = None,
) -> Plan:
    """Call the execution function ``name`` until its return fits ``expected``. The state fails after ``timeout``
    seconds, or if the function raises an error.

    expected
        value to compare with
    compare_operator
        how to compare: an execution function, a function of ``__utils__``, or a name of Python's module operator
    timeout, period
        seconds after which the state fails; seconds between two calls
    init_wait
        seconds before the first call
    args, kwargs
        arguments of the function
    """
    if name not in ctx.functions:
        return Plan.failed(f'Module.function "{name}" is unavailable.')
    if wrong := _wrong_times(period, timeout):
        return Plan.failed(wrong)
    compare = _comparator(ctx, compare_operator)
    if compare is None:
        return Plan.failed(f'Invalid operator "{compare_operator}" supplied.')
    attempts: list[object] = []

    def matches() -> bool:
        attempts.append(ctx.asked(name, *(args or ()), **(kwargs or {})))
        return bool(compare(attempts[-1], expected))

    def work() -> Outcome:
        if init_wait:
            time.sleep(init_wait)
        try:
            met = _repeated(matches, period, timeout)
        except StatecoreError as error:
            return Outcome(f"Exception occurred while executing {name}: {type(error)}:{error}", ok=False)
        if met:
            return Outcome(f"Call provided the expected results in {len(attempts)} attempts")
        return Outcome(f"Call did not produce the expected result after {len(attempts)} attempts", ok=False)

    would = f'Would have waited for "{name}" to produce "{expected}".'
    return Plan.change(would, [Step(f"call {name} until it returns {expected!r}", work)])


def _wrong_times(period: object, timeout: object) -> str:
    for name, value in (("Period", period), ("Timeout", timeout)):
        if not isinstance(value, int | float):
            return f"{name} must be specified as a float in seconds"
    return ""


def _comparator(ctx: Context, name: str) -> Callable[[object, object], Any] | None:
    if name in ctx.functions:
        return ctx.functions[name]
    utils = ctx.tables.get("utils", {})
    if "." in name and name in utils:
        return utils[name]
    found = None if name.startswith("_") else getattr(operator, name, None)
    return found if callable(found) else None


def _repeated(check: Callable[[], bool], period: float, timeout: float) -> bool:
    """Call ``check`` every ``period`` seconds. Return True once it is true, False after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    pause = threading.Event()
    while time.monotonic() < deadline:
        if check():
            return True
        pause.wait(period)
    return False
