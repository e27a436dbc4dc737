"""Options of Salt's commands: each is known here, and does what it says or ends with "not supported"."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from saltern.cli import cp, key, key_options, request, run, salt
from saltern.kit.command.command_line import CommandParser, words_of_stdin
from saltern.minion.call import call
from tests.conftest import Oracle

PARSERS: Mapping[str, Callable[[], CommandParser]] = {
    "salt": request.parser,
    "salt-call": call.parser,
    "salt-cp": cp.parser,
    "salt-key": key_options.parser,
    "salt-run": run.parser,
}

#: An option at the start of its line of --help, with its other names.
_OPTION = re.compile(r"^ {2,4}((?:-{1,2}[\w-]+(?:[= ][A-Z_a-z0-9.,]+)?(?:, )?)+)", re.MULTILINE)


@pytest.mark.oracle
@pytest.mark.parametrize("program", PARSERS)
def test_every_option_of_salt_is_known(program: str, oracle: Oracle) -> None:
    said = oracle.run(program, "--help")
    theirs = {name for found in _OPTION.findall(said) for name in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", found)}
    assert len(theirs) > 25
    known = set(PARSERS[program]()._option_string_actions)
    assert theirs - known == set()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        *((program, ("--saltfile", "x")) for program in PARSERS),
        *(("salt", words) for words in (("-H",),)),
        *(
            ("salt-call", words)
            for words in (("--proxyid=p",), ("--skip-grains",), ("--priv=u",), ("-r",), ("--tgt=x",))
        ),
        *(("salt-run", words) for words in (("--jid=20260101000000000000",), ("--enable-profiling",))),
        ("salt-cp", ("-H",)),
        ("salt-key", ("-T",)),
    ],
)
def test_what_is_not_here_says_so(program: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        PARSERS[program]().parse([*words, "*", "test.ping"])
    assert ended.value.code == 64
    assert f"{program}: error: not supported: {words[0].partition('=')[0]}; " in capsys.readouterr().err


@pytest.mark.parametrize("program", PARSERS)
def test_versions_report(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        PARSERS[program]().parse(["-V"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert re.match(r"Saltern:\n    saltern-services: \S+\n\nPackages:\n", said)
    assert re.search(r"^    pyzmq: \d", said, re.MULTILINE)
    assert re.search(r"^    Python: 3\.", said, re.MULTILINE)


def test_words_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """One a line; options too. Only where it is asked for is anything read."""
    monkeypatch.setattr("sys.stdin", io.StringIO("--out=json\ncmd.run\nls -l /tmp\n"))
    assert words_of_stdin(["salt", "x"]) == ["salt", "x"]
    found = request.parse_request(["web1", "--args-stdin"])
    assert (found.tgt, found.fun, found.arg, found.flags.out) == ("web1", "cmd.run", ["ls -l /tmp"], "json")


def test_preview_target(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"targets": {"minions": ["web2", "web1"], "missing": ["gone"]}})
    assert salt.run(["-L", "web1,web2,gone", "--preview-target"], fake.context()) == 0
    assert capsys.readouterr().out == "- gone\n- web1\n- web2\n"
    fake.answers["targets"] = {"minions": [], "missing": []}
    assert salt.run(["nobody", "test.ping", "--preview-target", "--out=json"], fake.context()) == 2
    assert [cmd for cmd, _ in fake.calls] == ["targets", "targets"]


def test_config_dump(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({}, options={"redis_url": "redis://:secret@store:6379/0"})
    assert salt.run(["--config-dump"], fake.context()) == 0
    dumped = yaml.safe_load(capsys.readouterr().out)
    assert (dumped["publish_port"], dumped["redis_url"]) == (4505, "redis://store:6379/0")


def test_salt_key_takes_standard_options(master: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    fake = master({"wheel": {"minions": ["web1"]}})
    words = ["-L", "--log-level=debug", "--log-file=/dev/null", "--log-file-level=info", "--hard-crash", "-u", "root"]
    assert key.run(words, fake.context()) == 0
    assert capsys.readouterr().out == "Accepted Keys:\nweb1\n"
