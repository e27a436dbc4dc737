"""Flags and options of the configuration become options of the outputters; terminals, files and colours."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saltern.kit.command.command_line import CommandError
from saltern.kit.command.output import color_wanted
from saltern.kit.command.output.color import OFF, Palette, fit_for_terminal, palette
from saltern.kit.config.master import ConfigError
from saltern.kit.config.minion_options import load_minion

PALETTE = Palette()


@pytest.mark.parametrize(
    ("force", "never", "configured", "terminal", "env", "color"),
    [
        (False, False, None, True, {}, True),
        (False, False, None, False, {}, False),
        (False, True, None, True, {}, False),
        (False, False, None, True, {"NO_COLOR": "1"}, False),
        (False, False, None, True, {"NO_COLOR": ""}, True),
        (True, True, None, False, {"NO_COLOR": "1"}, True),
        (False, False, False, True, {}, False),
        (False, False, True, False, {}, True),
        (False, False, "RED", False, {}, "RED"),
        (False, True, "RED", True, {}, False),
        (True, False, False, False, {}, True),
        # Who wrote it into a file meant it more than the environment does.
        (False, False, True, True, {"NO_COLOR": "1"}, True),
    ],
)
def test_color(
    force: bool, never: bool, configured: bool | str | None, terminal: bool, env: dict[str, str], color: bool | str
) -> None:
    assert color_wanted(force=force, never=never, configured=configured, is_terminal=terminal, env=env) == color


def test_theme(tmp_path: Path, printer: Callable[..., Any]) -> None:
    theme = tmp_path / "theme"
    theme.write_text("GREEN: '38;5;34'\nENDC: 0\nnosuch: 1\n")
    assert printer(color=True, color_theme=str(theme)).options.colors == PALETTE._replace(
        green="\033[38;5;34m", endc="\033[0m"
    )
    assert printer(color=False, color_theme=str(theme)).options.colors == OFF


@pytest.mark.parametrize("text", [None, "- a\n", "a: [", b"\xff"])
def test_wrong_theme(tmp_path: Path, printer: Callable[..., Any], text: Any) -> None:
    theme = tmp_path / "theme"
    if text is not None:
        theme.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=f"color_theme {theme}"):
        printer(color=True, color_theme=str(theme))
    # Nobody needs it without colour.
    assert printer(color_theme=str(theme)).options.colors == OFF


FLAGS: list[tuple[list[str], dict[str, Any], str, Any]] = [
    ([], {}, "out", ""),
    (["--out=json"], {"output": "yaml"}, "out", "json"),
    ([], {"output": "yaml"}, "out", "yaml"),
    (["--output", "txt"], {}, "out", "txt"),
    ([], {}, "indent", None),
    (["--out-indent", "2"], {"output_indent": 3}, "indent", 2),
    (["--output-indent=-1"], {}, "indent", -1),
    ([], {"output_indent": 3}, "indent", 3),
    ([], {"output_indent": None}, "indent", -1),
    ([], {"output_indent": "pretty"}, "indent", 4),
    ([], {"output_indent": "pretty"}, "sort_names", True),
    (["--state-output=terse"], {"state_output": "mixed"}, "state_output", "terse"),
    (["--state_output=terse"], {}, "state_output", "terse"),
    ([], {"state_output": "mixed"}, "state_output", "mixed"),
    (["--state-verbose=False"], {}, "state_verbose", False),
    (["--state_verbose=true"], {"state_verbose": False}, "state_verbose", True),
    (["--output-diff"], {}, "state_output_diff", True),
    (["--state-output-diff"], {}, "state_output_diff", True),
    ([], {"state_output_diff": True}, "state_output_diff", True),
    ([], {"state_tabular": "{1}"}, "state_tabular", "{1}"),
    ([], {"state_output_exclude": "True,None,"}, "state_output_exclude", ("True", "None")),
    (["--force-color"], {}, "colors", PALETTE),
    (["--force-colour"], {}, "colors", PALETTE),
    (["--no-color"], {"color": True}, "colors", OFF),
    (["--no-colour"], {}, "colors", OFF),
    ([], {"color": "CYAN"}, "colors", Palette(*["\033[0;36m"] * len(PALETTE))._replace(endc="\033[0;0m")),
    ([], {"strip_colors": False}, "strip_colors", False),
]


@pytest.mark.parametrize(("flags", "options", "name", "value"), FLAGS)
def test_flags(printer: Callable[..., Any], flags: list[str], options: dict[str, Any], name: str, value: Any) -> None:
    assert getattr(printer(*flags, **options).options, name) == value


def test_options_of_the_table_may_be_spelt_as_salt_does(tmp_path: Path, printer: Callable[..., Any]) -> None:
    (tmp_path / "minion").write_text(
        "id: m\nout.table.width: 20\nout.table.rows_key: out\nout_table: {justify: left}\n"
    )
    assert load_minion(str(tmp_path), {}).out_table == {"width": 20, "rows_key": "out", "justify": "left"}


def test_wrong_indent(printer: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"output_indent.*'wide'"):
        printer(output_indent="wide")


def test_files(tmp_path: Path, printer: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out"
    file.write_text("old\n")
    for flags, text in (
        ([], "web1:\n    True\nweb2:\n    é\\udc80\n"),
        (["--out-file-append"], "web1:\n    True\nweb2:\n    é\\udc80\n" * 2),
        (["--output-file-append", "--force-color", "--out=txt"], None),
        ([], "web1:\n    True\nweb2:\n    é\\udc80\n"),
    ):
        made = printer("--out-file", str(file), *flags)
        made.show({"web1": True})
        made.show({"web2": "é\udc80"})
        assert text is None or file.read_text() == text
    assert capsys.readouterr().out == ""


def test_the_file_of_the_configuration_grows(tmp_path: Path, printer: Callable[..., Any]) -> None:
    common, own = tmp_path / "common", tmp_path / "own"
    for number in (1, 2):
        printer(output_file=str(common)).show(number)
    printer("--out-file", str(own), output_file=str(common)).show(3)
    assert (common.read_text(), own.read_text()) == ("1\n2\n", "3\n")
    with pytest.raises(CommandError, match=r"output_file .*: Is a directory"):
        printer(output_file=str(tmp_path))


def test_a_file_that_cannot_be_written(tmp_path: Path, printer: Callable[..., Any]) -> None:
    with pytest.raises(CommandError, match=r"--out-file .*: No such file") as caught:
        printer("--out-file", str(tmp_path / "no" / "file"))
    assert caught.value.code == 64


SHOWN = [
    ("plain\ttext\r\nof two lines", "plain\ttext\r\nof two lines"),
    ("\x1b[31mred", "?[31mred"),
    ("title \x1b]0;x\x07 back\x08\x08 csi \x9b31m del\x7f nul\x00", "title ?]0;x? back?? csi ?31m del? nul?"),
    ("over\rwritten\r\r\n", "over?written?\r\n"),
    ("é ☃ 日本 \xa0", "é ☃ 日本 \xa0"),
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_what_reaches_a_terminal(text: str, shown: str) -> None:
    assert fit_for_terminal(text, OFF) == shown
    colored = f"{PALETTE.red}{text}{PALETTE.endc}"
    assert fit_for_terminal(colored, PALETTE) == f"{PALETTE.red}{shown}{PALETTE.endc}"


def test_only_our_own_sequences_pass() -> None:
    assert fit_for_terminal("\033[0;31ma\033[8mb\033[0;0m\033", palette(True)) == "\033[0;31ma?[8mb\033[0;0m?"


_AT_A_TERMINAL = """
import argparse
from saltern.kit.config.master import StateOptions
from saltern.kit.command.output.flags import Printer, add_output_flags
parser = argparse.ArgumentParser()
add_output_flags(parser)
for flags in ([], ["--no-color"]):
    for out in ("highstate", "txt"):
        state = {"result": True, "comment": "\\x1b[2J\\x08", "changes": {}, "__run_num__": 0, "name": "a"}
        data = {"web1": {"a_|-\\x1b]0;x\\x07_|-b_|-f": state} if out == "highstate" else "\\x1b[2J"}
        Printer(parser.parse_args(flags), StateOptions(strip_colors=STRIP), {}).show(data, out)
"""


@pytest.mark.parametrize("strip", [True, False])
def test_a_terminal_gets_colours_and_no_sequences_of_minions(strip: bool) -> None:
    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    script = _AT_A_TERMINAL.replace("STRIP", str(strip))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    _, errors = process.communicate(timeout=30)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert errors == b""
    colored, plain = shown[: len(shown) // 2], shown[-60:]
    assert PALETTE.green in colored
    assert PALETTE.cyan in shown
    assert ("\x1b[2J" in shown, "\x1b]0;" in shown, "\x08" in shown) == ((not strip,) * 3)
    assert plain.endswith("web1: ?[2J\n" if strip else "web1: \x1b[2J\n")


def test_a_file_that_takes_no_more(printer: Callable[..., Any]) -> None:
    full = printer("--out-file", "/dev/full")
    with pytest.raises(CommandError, match=r"^--out-file /dev/full: No space left on device$") as raised:
        full.say("x")
    assert raised.value.code == 1
