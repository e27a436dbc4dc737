"""Which outputter is taken, what happens when it does not fit, and samples: seen from Salt 3008.3, or better than it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from saltern.kit.command.output import OUTPUTTERS, OutputOptions, auto, one_line, render
from tests.services.kit.command.output import plain_cases, run_cases


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
    ("out", "data"),
    [
        ("nosuch", {"web1": True}),
        ("../nested", {"web1": True}),
        ("key", {"web1": ["a"]}),
        ("key", {"minions": "web1"}),
        ("highstate", {"web1": {"no_tag": {"result": True, "changes": {}, "comment": "", "__run_num__": 0}}}),
        # Salt shows these half changed: the duration with its unit already.
        ("highstate", {"web1": {"a_|-a_|-a_|-f": run_cases.state(0, True, warnings=None)}}),
        ("highstate", {"web1": {"a_|-a_|-a_|-f": run_cases.state(0, True, warnings=[1])}}),
        ("highstate", ["a"]),
        ("highstate", 7),
        ("no_return", {1: "a", "b": "c"}),
        ("table", {"web1": [[1, 2]]}),
        ("yaml", {"web1": plain_cases.deep(3000)}),
        ("json", {"web1": plain_cases.deep(3000)}),
        ("pprint", {"web1": plain_cases.deep(3000)}),
        ("raw", {"web1": plain_cases.deep(3000)}),
    ],
)
def test_misfit_is_shown_nested_with_a_warning(out: str, data: Any) -> None:
    told: list[str] = []
    assert render(data, OutputOptions(out=out), warn=told.append) == render(data, OutputOptions())
    assert len(told) == 1
    assert out in told[0]


@pytest.mark.parametrize("name", ["grains", "nested", ""])
def test_old_minions_ask_for_grains(name: str) -> None:
    told: list[str] = []
    assert render({"web1": {"os": "Debian"}}, OutputOptions(out=name), warn=told.append).endswith("Debian")
    assert told == []


def test_warning_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    render({}, OutputOptions(out="nosuch\x1b[2J"))
    assert capsys.readouterr().err == "[ERROR   ] Invalid outputter nosuch?[2J specified, fall back to nested\n"


def test_only_the_outputter_in_use_is_imported() -> None:
    script = (
        "import sys\nfrom saltern.kit.command.output import OutputOptions, render\nimport saltern.kit.command.output.flags\n"
        "render({'web1': True}, OutputOptions())\n"
        "print(*sorted(name.rpartition('.')[2] for name in sys.modules if name.startswith('saltern.kit.command.output.')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.split() == ["color", "flags", "nested", "options"]


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
    ("ndjson", "minions"): ({"web1": {"b": [1, "é"]}, "web2": "a\nb"}, '{"web1": {"b": [1, "é"]}}\n{"web2": "a\\nb"}'),
    ("ndjson", "value"): ([1, {"a": 2}], '[1, {"a": 2}]'),
    ("ndjson", "names"): ({"web1": {("t", 2): 1}}, '{"web1": {"(\'t\', 2)": 1}}'),
    ("summary", "values"): (
        {"web1": True, "web2": "one\ntwo\nthree\n", "web3": {"a": [1]}, "web4": "", "web5": None},
        'web1: true\nweb2: one (and 2 more lines)\nweb3: {"a": [1]}\nweb4:\nweb5: null',
    ),
    ("summary", "text"): ("one\ntwo", "one (and 1 more line)"),
    ("summary", "compile errors"): ({"web1": ["No matching sls", "x y"]}, "web1: No matching sls (and 1 more line)"),
    ("summary", "warnings"): (
        {
            "web1": {
                "file_|-a_|-/a_|-managed": {"result": True, "changes": {}, "duration": 1, "warnings": ["a.sls:3: x"]}
            }
        },
        "web1: 1 succeeded, 1 with warnings, 0.0 s",
    ),
    ("summary", "runs"): (
        {
            "web1": {
                "pkg_|-web_|-nginx_|-installed": {
                    "__run_num__": 0,
                    "result": True,
                    "changes": {"a": 1},
                    "duration": 900,
                },
                "file_|-b_|-/b_|-managed": {"__run_num__": 1, "result": True, "changes": {}, "duration": "120.5 ms"},
            },
            "web2": {
                "cmd_|-late_|-false_|-run": {"__run_num__": 2, "result": False, "comment": "late", "changes": {}},
                "cmd_|-x_|-false_|-run": {
                    "__run_num__": 1,
                    "__id__": "x",
                    "result": False,
                    "comment": "Failed.\nmore",
                    "changes": {},
                },
                "file_|-b_|-/b_|-managed": {"__run_num__": 0, "result": None, "changes": {"diff": "x"}},
            },
        },
        "web1: 2 succeeded (1 changed), 1.0 s\n"
        "web2: 0 succeeded, 1 would change, 2 failed, 0.0 s; cmd.run x: Failed. (and 1 more line)",
    ),
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
    # From here on Salt shows less: nothing at all, {}, or what stands in the first line of each cell.
    ("nested", "undecodable"): ({"web1": b"\xff\x00"}, "web1:\n    b'\\xff\\x00'"),
    ("nested", "set"): ({"web1": {3}}, "web1:\n    {3}"),
    ("json", "names"): (
        {"web1": {b"k": 1, ("t", 2): 2, None: 3, True: 4}},
        '{\n    "web1": {\n        "k": 1,\n        "(\'t\', 2)": 2,\n        "null": 3,\n        "true": 4\n    }\n}',
    ),
    ("table", "wrapped"): (
        {"web1": [{"a": "x " * 30 + "end", "b": "y"}]},
        "\n".join(
            [
                "web1:",
                "----------",
                f"    {'-' * 57}",
                f"    | {'A':^49} | B |",
                f"    {'-' * 57}",
                f"    | {' '.join('x' * 25)} | y |",
                f"    | {'x x x x x end'.center(49)} |   |",
                f"    {'-' * 57}",
            ]
        ),
    ),
    ("table", "ragged"): (
        {"web1": [["a"], ["b", "cc"]]},
        "web1:\n----------\n    ----------\n    | a |    |\n    ----------\n    | b | cc |\n    ----------",
    ),
}


@pytest.mark.parametrize(("outputter", "name"), SAMPLES)
def test_sample(outputter: str, name: str) -> None:
    data, text = SAMPLES[outputter, name]
    assert render(data, OutputOptions(out=outputter)) == text


def test_ids_are_not_compressed_beside_errors(ours: Callable[..., str]) -> None:
    running = {f"file_|-gone_|-/{n}_|-absent": run_cases.state(n, True, __id__="gone") for n in range(2)}
    hosts = {"web1": running, "web2": ["broken"]}
    assert ours(hosts, "highstate", {"state_compress_ids": True}) == ours(hosts, "highstate", {})
    assert ours({"web1": running}, "highstate", {"state_compress_ids": True}) != ours(
        {"web1": running}, "highstate", {}
    )


@pytest.mark.parametrize("given", ["True", True, [True], "True, None", ["None", "True"]])
def test_what_filter_leaves_out_may_be_said_in_any_way(ours: Callable[..., str], given: Any) -> None:
    running = {"web1": {"a_|-kept_|-a_|-f": run_cases.state(0, False), "b_|-gone_|-b_|-f": run_cases.state(1, True)}}
    shown = ours(running, "highstate", {"state_output": "filter", "state_output_exclude": given})
    assert "kept" in shown
    assert "gone" not in shown


def test_options_of_json_do_not_hurt_the_others(ours: Callable[..., str]) -> None:
    data = {"b": [1], "a": {"y": 2, "x": 3}}
    assert ours(data, "json", {"output_indent": "pretty"}).startswith('{\n    "a": {\n        "x": 3,')
    assert ours(data, "yaml", {"output_indent": "pretty"}) == "a:\n    x: 3\n    y: 2\nb:\n- 1"
    assert ours(data, "yaml", {"output_indent": None}) == ours(data, "yaml", {"output_indent": -1})


@pytest.mark.parametrize(
    ("table", "why"), [({"justify": "middle"}, "middle"), ({"widht": 3}, "widht"), ({"width": "wide"}, "width")]
)
def test_wrong_option_of_table(table: dict[str, Any], why: str) -> None:
    told: list[str] = []
    rows = {"web1": [["a b", "c"]]}
    assert render(rows, OutputOptions(out="table", table=table), warn=told.append) == render(rows, OutputOptions())
    assert why in told[0] or "str" in told[0]


def test_wrong_format_of_terse_lines() -> None:
    told: list[str] = []
    running = {"web1": {"a_|-a_|-a_|-f": run_cases.state(0, True)}}
    options = OutputOptions(out="highstate", state_output="terse", state_tabular="{9}")
    assert render(running, options, warn=told.append) == render(running, OutputOptions())
    assert len(told) == 1


def _circle() -> dict[str, Any]:
    circle: dict[str, Any] = {"web1": {}}
    circle["web1"]["again"] = [circle["web1"], circle["web1"]]
    return circle


SHAPES: dict[str, Any] = {
    "empty mapping": {},
    "empty list": [],
    "empty text": "",
    "none": None,
    "zero": 0,
    "no return": {"web1": None},
    "contains itself": _circle(),
    "deep": plain_cases.deep(5000),
    "more digits than Python shows": 10**5000,
    "such a number in a mapping": {"a": 10**5000},
}


@pytest.mark.parametrize("out", sorted(OUTPUTTERS))
@pytest.mark.parametrize("shape", SHAPES)
def test_every_outputter_takes_every_shape(out: str, shape: str) -> None:
    assert isinstance(render(SHAPES[shape], OutputOptions(out=out), warn=lambda line: None), str)


def test_depth_has_an_end() -> None:
    assert "(more than 100 levels deep)" in render(plain_cases.deep(5000), OutputOptions())
    assert render(_circle(), OutputOptions()).count("(contains itself)") == 2


def test_summary_marks_a_command_that_failed() -> None:
    data = {"web1": "cat: no such file\nx"}
    plain = OutputOptions()
    assert one_line.render(data, plain) == "web1: cat: no such file (and 1 more line)"
    marked = one_line.render(data, plain._replace(retcode=3))
    assert marked == "web1: failed (exit code 3): cat: no such file (and 1 more line)"
    run = {"web1": {"test_|-a_|-a_|-nop": {"result": False, "comment": "no", "changes": {}, "__id__": "a"}}}
    assert one_line.render(run, plain._replace(retcode=2)) == "web1: 0 succeeded, 1 failed, 0.0 s; test.nop a: no"
