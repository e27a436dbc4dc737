"""An unknown option of any of our programs names the nearest one."""

from __future__ import annotations

import pytest

from saltern import entry
from saltern.cli import cp, eventlisten, key_options, request, run
from saltern.minion.call import call
from statecore.analysis.commands import main as statecore

PARSERS = {
    "salt": request.parser,
    "salt-run": run.parser,
    "salt-key": key_options.parser,
    "salt-cp": cp.parser,
    "salt-call": call.parser,
    "eventlisten": eventlisten.parser,
}


@pytest.mark.parametrize("program", PARSERS)
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--confg-dir=/x"], "; did you mean '--config-dir'?"),
        (["--log-levle=debug"], "; did you mean '--log-level'?"),
        (["--qqqqqq"], ""),
    ],
)
def test_an_operators_command(program: str, words: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        PARSERS[program]().parse(words)
    assert ended.value.code == 64
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"{program}: error: no such option: {words[0].partition('=')[0]}{hint}"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["publisher", "--log-levle", "x"], "--log-level"),
        (["minion", "--confg-dir", "x"], "--config-dir"),
        (["keygen", "--in-cluster", "--operater", "x"], "--operator"),
        (["health", "--lvie"], "--live"),
    ],
)
def test_a_command_of_saltern(words: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        entry.main(words)
    assert ended.value.code == 64
    assert capsys.readouterr().err.rstrip().endswith(f"; did you mean '{hint}'?")


def test_statecore_knows_the_options_of_its_subcommands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        statecore.main(["check", "--vrebose", "."])
    assert ended.value.code == 64
    assert capsys.readouterr().err.endswith(
        "statecore: error: unrecognized arguments: --vrebose; did you mean '--verbose'?\n"
    )
