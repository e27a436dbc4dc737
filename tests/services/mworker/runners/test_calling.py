"""Runners that are called wrongly, or for nobody: what is wrong, and what they take."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from saltern.kit.config.master import MasterOptions
from saltern.kit.jobs.returns import NO_MATCH
from saltern.mworker.runners import manage, mine, runner, salt, survey
from saltern.mworker.runners.calling import misuse, usage
from saltern.mworker.runners.runner import Asked, RunnerCall, RunnerTools
from saltern.mworker.runners.table import RUNNERS
from saltern.mworker.senders import Behalf


def two(tools: object, first: str, second: int = 2, *, third: bool = False) -> None:
    """Does nothing.

    With two.
    """


#: The sender for whom the runners work.
BEHALF: Behalf = {"way": "key", "name": "ann", "eauth": "", "groups": []}


def any_number(tools: object, *args: Any, **kwargs: Any) -> None: ...


@pytest.mark.parametrize(
    ("arg", "kwarg", "fault"),
    [
        ([], {}, "two() missing 1 required positional argument: 'first'"),
        ([1, 2, 3], {}, "two() takes from 1 to 2 positional arguments but 3 were given"),
        ([1], {"first": 2}, "two() got multiple values for argument 'first'"),
        ([1], {"nosuch": 2}, "two() got an unexpected keyword argument 'nosuch'"),
    ],
)
def test_what_does_not_fit_is_told_with_what_does(arg: list[Any], kwarg: dict[str, Any], fault: str) -> None:
    known = "x.two(first, second=2, *, third=False)\n\nDoes nothing.\n\nWith two."
    assert misuse("x.two", two, arg, kwarg, given=1) == f"Passed invalid arguments: {fault}\n\nUsage:\n\n{known}"


@pytest.mark.parametrize(
    ("function", "arg", "kwarg"),
    [(two, [1], {}), (two, [1, 2], {"third": 3}), (any_number, [1, 2, 3, 4], {"x": 1}), (any_number, [], {})],
)
def test_what_fits_passes(function: Any, arg: list[Any], kwarg: dict[str, Any]) -> None:
    assert misuse("x.y", function, arg, kwarg, given=1) is None


def test_a_fault_of_the_runner_is_no_fault_of_its_arguments() -> None:
    def broken(tools: object) -> None:
        len(cast(Any, 5))

    call = RunnerCall("1", "own.broken", broken, [], {}, "ann", BEHALF)
    tools = SimpleNamespace(options=MasterOptions(), scratch={})
    value, code = runner.outcome(call, cast(RunnerTools, tools))
    assert (value, code) == (
        "Exception occurred in runner own.broken: TypeError: object of type 'int' has no len()",
        1,
    )


@pytest.mark.parametrize("fun", RUNNERS)
def test_every_runner_of_ours_tells_what_it_takes(fun: str) -> None:
    told = usage(fun, RUNNERS[fun], given=1)
    assert told.startswith(f"{fun}(")
    assert "tools" not in told.partition("\n")[0]


@pytest.mark.parametrize(
    "ask",
    [
        lambda tools: survey.hash(tools, "nobody*", "test.ping"),
        lambda tools: survey.diff(tools, "nobody*", "test.ping"),
        lambda tools: mine.update(tools, "nobody*"),
        lambda tools: salt.execute(tools, "nobody*", "test.ping"),
        lambda tools: manage.up(tools, "nobody*"),
        lambda tools: manage.down(tools, tgt="nobody*"),
        lambda tools: manage.status(tools, tgt="nobody*"),
    ],
)
def test_who_asks_nobody_is_told(ask: Callable[[RunnerTools], Any]) -> None:
    tools = cast(RunnerTools, SimpleNamespace(ask=lambda *args, **kwargs: Asked("", (), {}), scratch={}))
    call = RunnerCall("1", "x.y", ask, [], {}, "ann", BEHALF)
    assert runner.outcome(call, tools) == (NO_MATCH, 2)


def test_a_master_without_minions_has_none_that_are_up() -> None:
    tools = cast(RunnerTools, SimpleNamespace(ask=lambda *args, **kwargs: Asked("", (), {}), scratch={}))
    assert runner.outcome(RunnerCall("1", "manage.status", manage.status, [], {}, "ann", BEHALF), tools) == (
        {"up": [], "down": []},
        0,
    )
