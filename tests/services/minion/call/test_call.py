"""``salt-call --local``: what it prints, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.command.command_line import CommandError
from saltern.minion.call import call

SLS = """
kept:
  test.fail_without_changes: []
gone:
  test.nop: []
"""

Run = Callable[..., int]


@pytest.fixture
def salt_call(tmp_path: Path) -> Run:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "two.sls").write_text(SLS)
    (tree / "wrong.sls").write_text("a:\n  test.nop:\n    - require: b\n")

    def run(*words: str, **options: Any) -> int:
        given = {"id": "web1", "cachedir": str(tmp_path / "cache"), "pki_dir": str(tmp_path / "pki"), **options}
        (tmp_path / "minion").write_text(json.dumps(given))
        return call.run(["-c", str(tmp_path), "--local", "--file-root", str(tree), *words])

    return run


def test_metadata(salt_call: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert salt_call("--metadata", "--set-metadata", "{a: 1}", "--out=json", "test.echo", "hi") == 0
    shown = json.loads(capsys.readouterr().out)["local"]
    assert len(shown.pop("jid")) == 20
    assert shown == {
        "id": "web1",
        "fun": "test.echo",
        "fun_args": ["hi"],
        "return": "hi",
        "retcode": 0,
        "metadata": {"a": 1},
    }


def test_metadata_of_a_failed_run(salt_call: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert salt_call("--metadata", "state.apply", "two") == 1
    out = capsys.readouterr().out
    # Nested, since it is no state run any more that is shown.
    assert out.startswith("local:\n    ----------\n    fun:\n        state.apply\n")
    assert "    out:\n        highstate\n    retcode:\n        2\n" in out


def test_a_wrong_call_is_told_with_the_documentation(salt_call: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert salt_call("test.echo") == 1
    assert [line.rstrip() for line in capsys.readouterr().err.splitlines()[:5]] == [
        "Passed invalid arguments: echo() missing 1 required positional argument: 'text'.",
        "",
        "Usage:",
        "",
        "    Return the argument ``text`` unchanged.",
    ]


def test_documentation(salt_call: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert salt_call("-d", "test.pin") == 0
    out = capsys.readouterr().out
    assert out.startswith("test.ping:\n")
    assert out.startswith("test.ping:\n\n    ")
    assert out.count(":\n") == out.count("test.ping:\n") + out.count("Example:\n")
    assert salt_call("-d") == 0
    assert "state.apply:\n" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["exclude=True,"], ["exclude=[True]"]])
def test_filters_of_the_command_line(salt_call: Run, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert salt_call("state.apply", "two", *words, "--state-output=filter") == 1
    out = capsys.readouterr().out
    assert "kept" in out
    assert "gone" not in out
    assert "Succeeded: 1\nFailed:    1" in out


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            {"state_output": "terse_id", "state_output_profile": False},
            "  Name: kept - Function: test.fail_without_changes",
        ),
        ({"state_output": "terse", "state_tabular": "{2}/{3}/{4}"}, "test/nop/Clean"),
        ({"state_output_pct": True}, "Failure %: 50.0"),
        ({"output": "txt"}, "local: {'test_|-kept_|-kept_|-fail_without_changes': "),
        ({"color": "RED"}, "\033[0;31mlocal:\033[0;0m"),
    ],
)
def test_options(salt_call: Run, capsys: pytest.CaptureFixture[str], options: dict[str, Any], line: str) -> None:
    assert salt_call("state.apply", "two", **options) == 1
    assert any(shown.startswith(line) for shown in capsys.readouterr().out.splitlines())


def test_compile_errors_are_a_list_in_every_outputter(salt_call: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert salt_call("state.apply", "wrong") == 1
    assert capsys.readouterr().out.startswith("local:\n    Data failed to compile:\n----------\n    ")
    assert salt_call("state.apply", "wrong", "--out=json") == 1
    assert isinstance(json.loads(capsys.readouterr().out)["local"], list)


def test_out_file(salt_call: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    for flags, text in (([], "local:\n    a\n"), (["--out-file-append"], "local:\n    a\nlocal:\n    a\n")):
        assert salt_call("test.echo", "a", "--out-file", str(file), *flags) == 0
        assert file.read_text() == text
    assert capsys.readouterr().out == ""
    with pytest.raises(CommandError, match="--out-file"):
        salt_call("test.echo", "a", "--out-file", str(tmp_path))


def test_outputters_of_the_tree(salt_call: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tree" / "_output").mkdir()
    (tmp_path / "tree" / "_output" / "loud.py").write_text(
        "def output(data, **kwargs):\n    return f\"{__opts__['id']}: {data['local']}!\".upper()\n"
    )
    assert salt_call("saltutil.sync_output") == 0
    assert capsys.readouterr().out == "local:\n    - output.loud\n"
    assert salt_call("test.echo", "hi", "--out=loud") == 0
    assert capsys.readouterr().out == "WEB1: HI!\n"


FAILED = {
    "a failed command": (("user.chuid", "nosuch", "4"), "Error running 'user.chuid': User 'nosuch' does not exist"),
    "an exception": (("test.exception",), "The minion function caused an exception: Exception: Test Exception"),
    "a missing argument": (("test.fib",), "Passed invalid arguments: fib() missing 1 required positional argument"),
    "an unknown argument": (("test.ping", "x=1"), "ERROR executing 'test.ping': The following keyword arguments"),
}


@pytest.mark.parametrize(("words", "message"), FAILED.values(), ids=FAILED)
def test_an_error_goes_to_stderr_alone(
    salt_call: Run, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert salt_call("--out=json", *words) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err


def test_a_failed_call_with_a_value_is_a_return(salt_call: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert salt_call("--out=json", "archive.gzip", "/nonexistent/file") == 1
    assert json.loads(capsys.readouterr().out) == {"local": ["gzip: /nonexistent/file: No such file or directory"]}


def test_file_roots_add_up(salt_call: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/three.sls").write_text("x: {test.nop: []}\n")
    assert salt_call("--file-root", str(tmp_path / "more"), "--out=json", "cp.list_master") == 0
    assert json.loads(capsys.readouterr().out) == {"local": ["three.sls", "two.sls", "wrong.sls"]}


def test_documentation_of_one_function_alone(salt_call: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        salt_call("-d", "test.ping", "extra")
    assert ended.value.code == 64
    assert "You can only get documentation for one method at one time" in capsys.readouterr().err
