"""The looks of every outputter: tables of values and options, shown by ours and by real Salt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.services.kit.command.output import plain_cases, run_cases

Case = tuple[str, Any, str, dict[str, Any]]

#: Where real Salt's own words are not repeated: theirs, ours.
_WORDS = (
    "The State execution failed to record the order in which all states were executed. "
    "The state return missing data is:",
    "This state's result does not say when it ran, so its place in the order is not known:",
)


def _crossed(outputter: str, options: list[dict[str, Any]], table: Mapping[str, Any]) -> list[Case]:
    return [(name, data, outputter, given) for given in options for name, data in table.items()]


COLORS: list[dict[str, Any]] = [{}, {"color": True}]

GROUPS: Mapping[str, list[Case]] = {
    "plain": [
        case
        for outputter, options in plain_cases.PLAIN_OPTIONS.items()
        for case in _crossed(
            outputter, options, {**plain_cases.VALUES, **(plain_cases.HIDDEN if outputter != "nested" else {})}
        )
    ],
    "runs": _crossed("highstate", run_cases.RUN_OPTIONS, run_cases.RUNS),
    "special runs": _crossed("highstate", run_cases.SPECIAL_OPTIONS, run_cases.SPECIAL_RUNS),
    "thousands": _crossed(
        "highstate", [{"color": True}, {"state_tabular": True, "state_output": "terse"}], run_cases.THOUSANDS
    ),
    "misfits": _crossed("highstate", run_cases.MISFIT_OPTIONS, run_cases.MISFITS),
    "values as runs": _crossed("highstate", COLORS, plain_cases.VALUES),
    "tables": _crossed("table", plain_cases.TABLE_OPTIONS, plain_cases.TABLES),
    "values as tables": _crossed("table", COLORS, plain_cases.VALUES),
    "keys": _crossed("key", COLORS, plain_cases.KEYS),
    "silent": _crossed("no_return", COLORS, plain_cases.NO_RETURN),
}


@pytest.mark.oracle
@pytest.mark.parametrize("group", GROUPS)
def test_every_look_is_salts(salt: Any, ours: Callable[..., str], group: str) -> None:
    different = []
    for name, data, outputter, options in GROUPS[group]:
        shown = ours(data, outputter, options)
        real = salt.shows(data, outputter, options)
        # Where Salt dies of the data, ours shows it nested.
        expected = ours(data, "nested", options) if real.raised else real.text.replace(*_WORDS)
        if shown != expected:
            different.append(f"--- {outputter} {options} {name}: Salt {real.raised}\n{expected}\n+++ ours\n{shown}")
    assert not different, f"{len(different)} of {len(GROUPS[group])} differ\n" + "\n".join(different[:8])


def test_the_tables_are_not_empty() -> None:
    assert sum(map(len, GROUPS.values())) > 2000
