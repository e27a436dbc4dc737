"""Returns that nobody thought of: real Salt and ours show the same, and none is a traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saltern.kit.command.output import OUTPUTTERS, OutputOptions, render
from saltern.kit.command.output.color import palette

_QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]

_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_names = st.text(max_size=6) | st.integers(0, 20)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=3)
    return lists | lists.map(tuple) | st.dictionaries(_names, inner, max_size=3)


VALUES = st.recursive(_scalars, _containers, max_leaves=12)

#: Rows whose cells are of one line, so that Salt loses none.
_cells = st.text(st.characters(exclude_characters=" \n"), min_size=1, max_size=8)
_columns = st.integers(1, 4)
ROWS = _columns.flatmap(
    lambda width: (
        st.lists(st.lists(_cells, min_size=width, max_size=width), max_size=4)
        | st.lists(
            st.dictionaries(_cells, VALUES.filter(lambda cell: " " not in str(cell)), min_size=1, max_size=1),
            max_size=4,
        )
        | st.lists(_cells, max_size=4)
    )
)

PLAIN_OPTIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "nested": st.fixed_dictionaries({}, optional={"color": st.booleans(), "retcode": st.integers(0, 1)}),
    "json": st.fixed_dictionaries({}, optional={"output_indent": st.integers(-1, 5)}),
    "yaml": st.fixed_dictionaries({}, optional={"output_indent": st.integers(-1, 9)}),
    "pprint": st.fixed_dictionaries({}, optional={"output_indent": st.integers(-1, 5)}),
    "txt": st.just({}),
    "raw": st.just({}),
}


@pytest.mark.oracle
@settings(max_examples=400, deadline=None, suppress_health_check=_QUIET)
@given(value=VALUES, bare=st.booleans(), data=st.data(), outputter=st.sampled_from(sorted(PLAIN_OPTIONS)))
def test_values_look_as_salts(
    salt: Any, ours: Callable[..., str], value: Any, bare: bool, data: st.DataObject, outputter: str
) -> None:
    options = data.draw(PLAIN_OPTIONS[outputter])
    shown = value if bare else {"web1": value}
    real = salt.shows(shown, outputter, options)
    assert real.raised == ""
    assert ours(shown, outputter, options) == real.text


@pytest.mark.oracle
@settings(max_examples=100, deadline=None, suppress_health_check=_QUIET)
@given(
    rows=ROWS,
    below=st.booleans(),
    options=st.fixed_dictionaries(
        {},
        optional={
            "color": st.booleans(),
            "out.table.justify": st.sampled_from(["left", "right", "center"]),
            "out.table.separate_rows": st.booleans(),
            "out.table.has_header": st.booleans(),
            "out.table.rows_key": st.just("rows"),
            "out.table.nested_indent": st.integers(0, 3),
        },
    ),
)
def test_tables_look_as_salts(
    salt: Any, ours: Callable[..., str], rows: Any, below: bool, options: dict[str, Any]
) -> None:
    shown = {"web1": {"rows": rows} if below else rows}
    real = salt.shows(shown, "table", options)
    assert real.raised == ""
    assert ours(shown, "table", options) == real.text


_plain_text = st.text(st.characters(exclude_characters="{}"), max_size=12)
_changes = st.just({}) | st.dictionaries(st.text(min_size=1, max_size=5), VALUES, max_size=3)


def _states(number: int) -> st.SearchStrategy[dict[str, Any]]:
    """State number so and so, as statecore and Salt's modules return it; now and then something is missing."""
    return st.fixed_dictionaries(
        {
            "__run_num__": st.just(number),
            "__id__": st.sampled_from(["a", "b", "c d"]),
            "__sls__": st.sampled_from(["web", "web.conf"]),
            "name": _plain_text,
            "result": st.sampled_from([True, True, False, None]),
            "comment": _plain_text | st.lists(_plain_text, max_size=2),
            "changes": _changes,
            "duration": st.floats(0, 5000).map(lambda ms: round(ms, 3)),
            "start_time": st.just(f"00:00:{number:02}.000001"),
        },
        optional={
            "warnings": st.lists(_plain_text, min_size=1, max_size=2),
            "__parallel__": st.just(True),
            "data": VALUES,
        },
    )


def _running(size: int) -> st.SearchStrategy[dict[str, Any]]:
    def tagged(states: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        # The name in the tag may be anything, the rest are words; the tag of each state is its own.
        return {
            f"test_|-{one['__id__']}_|-{one['__id__'] if number % 3 else number}{number}_|-nop": one
            for number, one in enumerate(states)
        }

    return st.tuples(*map(_states, range(size))).map(tagged)


RUNS = st.dictionaries(
    st.text("abc", min_size=1, max_size=4),
    st.integers(0, 4).flatmap(_running) | st.lists(_plain_text, max_size=2) | _plain_text | st.booleans(),
    min_size=1,
    max_size=2,
)

_results = st.lists(st.sampled_from(["True", "False", "None"]), max_size=2)
RUN_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "color": st.booleans(),
        "state_output": st.builds(
            "{}{}".format,
            st.sampled_from(["full", "terse", "mixed", "changes", "filter"]),
            st.sampled_from(["", "_id"]),
        ),
        "state_output_exclude": _results,
        "state_output_terse": _results,
        "state_verbose": st.booleans(),
        "state_output_diff": st.booleans(),
        "state_output_profile": st.booleans(),
        "state_output_pct": st.booleans(),
        "state_tabular": st.booleans(),
        "state_compress_ids": st.booleans(),
    },
)


@pytest.mark.oracle
@settings(max_examples=250, deadline=None, suppress_health_check=_QUIET)
@given(hosts=RUNS, options=RUN_OPTIONS, orchestrated=st.booleans())
def test_runs_look_as_salts(
    salt: Any, ours: Callable[..., str], hosts: dict[str, Any], options: dict[str, Any], orchestrated: bool
) -> None:
    if options.get("state_compress_ids") and not all(isinstance(running, dict) for running in hosts.values()):
        # Salt has changed half of them by the time it finds that it cannot go on (see test_choice.py).
        del options["state_compress_ids"]
    if orchestrated:
        above = {
            "result": True,
            "comment": "",
            "name": "deploy",
            "__run_num__": 0,
            "__id__": "deploy",
            "__sls__": "orch",
        }
        above |= {"duration": 1.0, "start_time": "00:00:00.000000", "changes": {"out": "highstate", "ret": hosts}}
        hosts = {
            "data": {"m1_master": {"salt_|-deploy_|-deploy_|-state": above}},
            "outputter": "highstate",
            "retcode": 0,
        }
    real = salt.shows(hosts, "highstate", options)
    assert real.raised == ""
    assert ours(hosts, "highstate", options) == real.text


_broken = st.recursive(
    _scalars | st.binary(max_size=4) | st.sampled_from([{}, [], {1, 2}, object]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["a_|-b_|-c_|-d", "a_|-b", "return", "data", "changes", "result", "ret", "out", "comment", "jid", "fun"]
            )
            | _names
            | st.binary(max_size=3)
            | st.tuples(st.integers()),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None, suppress_health_check=_QUIET)
@given(_broken, st.sampled_from(sorted(OUTPUTTERS)), st.booleans(), st.sampled_from(["full", "terse_id", "filter"]))
def test_nothing_breaks_an_outputter(value: Any, outputter: str, color: bool, mode: str) -> None:
    options = OutputOptions(out=outputter, colors=palette(color), state_output=mode, state_compress_ids=color)
    text = render(value, options, warn=lambda line: None)
    assert text == text.rstrip()
