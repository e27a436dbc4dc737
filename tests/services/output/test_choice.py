"""Which outputter is taken, what happens when it does not fit, when there is colour; and samples seen from Salt 3008.3."""

from __future__ import annotations

from typing import Any

import pytest

from services.kit.output import OUTPUTTERS, OutputOptions, auto, color_wanted, render


@pytest.mark.parametrize(
    ("asked", "named", "static", "fun", "taken"),
    [
        ("", None, False, "test.ping", "nested"),
        ("", "highstate", False, "state.apply", "highstate"),
        ("json", "highstate", False, "state.apply", "json"),
        ("json", "no_return", False, "test.ping", "json"),
        # A failed state call is text that its minion wants shown nested.
        ("highstate", "nested", False, "state.apply", "nested"),
        ("highstate", None, False, "state.apply", "nested"),
        ("highstate", None, True, "test.ping", "highstate"),
        ("", None, True, "state.apply", "highstate"),
        ("", None, True, "test.ping", "nested"),
    ],
)
def test_choice(asked: str, named: str | None, static: bool, fun: str, taken: str) -> None:
    assert auto(named, OutputOptions(out=asked), fun=fun, static=static).out == taken


@pytest.mark.parametrize(
    ("force", "never", "terminal", "env", "color"),
    [
        (False, False, True, {}, True),
        (False, False, False, {}, False),
        (False, True, True, {}, False),
        (False, False, True, {"NO_COLOR": "1"}, False),
        (False, False, True, {"NO_COLOR": ""}, True),
        (True, True, False, {"NO_COLOR": "1"}, True),
    ],
)
def test_color(force: bool, never: bool, terminal: bool, env: dict[str, str], color: bool) -> None:
    assert color_wanted(force=force, never=never, is_terminal=terminal, env=env) is color


@pytest.mark.parametrize(
    ("out", "data"),
    [
        ("nosuch", {"web1": True}),
        ("key", {"web1": ["a"]}),
        ("highstate", {"web1": {"no_tag": {"result": True, "changes": {}, "comment": "", "__run_num__": 0}}}),
        ("highstate", ["a"]),
        ("no_return", {1: "a", "b": "c"}),
    ],
)
def test_misfit_is_shown_nested_with_a_warning(out: str, data: Any) -> None:
    told: list[str] = []
    assert render(data, OutputOptions(out=out), warn=told.append) == render(data, OutputOptions())
    assert len(told) == 1
    assert out in told[0]


def test_warning_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    render({}, OutputOptions(out="nosuch"))
    assert capsys.readouterr().err == "[ERROR   ] Invalid outputter nosuch specified, fall back to nested\n"


SAMPLES = {
    ("nested", "dict"): (
        {"local": {"a": {"b": 1}, "b": ["x", {"y": 2}]}},
        "local:\n    ----------\n    a:\n        ----------\n        b:\n            1\n    b:\n        - x\n        |_\n"
        "          ----------\n          y:\n              2",
    ),
    ("json", "list"): ({"local": [1, "é"]}, '{\n    "local": [\n        1,\n        "é"\n    ]\n}'),
    ("yaml", "list"): ({"local": {"args": [1, "a"]}}, "local:\n  args:\n  - 1\n  - a"),
    ("txt", "lines"): ({"web1": "a\nb"}, "web1: a\nweb1: b"),
    ("raw", "dict"): ({"local": {"args": (1, "a")}}, "{'local': {'args': (1, 'a')}}"),
    ("quiet", "anything"): ({"web1": True}, ""),
    ("newline_values_only", "nested"): ({"web1": ["a", {"b": "c"}], "web2": 3}, "a\nc\n3"),
    ("key", "list"): (
        {"minions": ["web1"], "minions_denied": [], "minions_pre": [], "minions_rejected": []},
        "Accepted Keys:\nweb1\nDenied Keys:\nUnaccepted Keys:\nRejected Keys:",
    ),
    ("highstate", "compile errors"): (
        {"web1": ["No matching sls found for 'nosuch' in env 'base'"]},
        "web1:\n    Data failed to compile:\n----------\n    No matching sls found for 'nosuch' in env 'base'",
    ),
    ("highstate", "failed"): (
        {
            "web1": {
                "test_|-bad_|-bad_|-fail_without_changes": {
                    "__run_num__": 0,
                    "result": False,
                    "comment": "Failure!",
                    "changes": {},
                    "name": "bad",
                    "start_time": "00:17:02.004021",
                    "duration": 0.313,
                }
            }
        },
        "web1:\n----------\n          ID: bad\n    Function: test.fail_without_changes\n      Result: False\n"
        "     Comment: Failure!\n     Started: 00:17:02.004021\n    Duration: 0.313 ms\n     Changes:   \n\n"
        "Summary for web1\n------------\nSucceeded: 0\nFailed:    1\n------------\nTotal states run:     1\n"
        "Total run time:   0.313 ms",
    ),
}


@pytest.mark.parametrize(("outputter", "name"), SAMPLES)
def test_sample(outputter: str, name: str) -> None:
    data, text = SAMPLES[outputter, name]
    assert render(data, OutputOptions(out=outputter)) == text


def test_values_that_salt_hides_are_shown() -> None:
    assert render({"web1": b"\xff\x00"}, OutputOptions()) == "web1:\n    b'\\xff\\x00'"
    assert render({"web1": {3}}, OutputOptions()) == "web1:\n    {3}"


def test_every_outputter_takes_every_shape() -> None:
    for out in OUTPUTTERS:
        for data in ({}, [], "", None, 0, {"web1": None}):
            assert isinstance(render(data, OutputOptions(out=out), warn=lambda line: None), str)
