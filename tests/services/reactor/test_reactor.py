"""Reactor SLS of every renderer become requests on the control link; what is wrong becomes a line of the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from masterstore.events import KeptEvent
from saltern.kit.config.master import MasterOptions
from saltern.kit.config.reactor_rows import rows_of
from saltern.kit.links.control import ControlClient, ControlError
from saltern.kit.process.service import Role
from saltern.reactor.inbox import EventTask
from saltern.reactor.main import Reactor, asker
from saltern.reactor.sls import ReactorSls
from saltern.reactor.table import ReactorTable

#: A user's renderer: lines of "ID: function target".
LINES = """
def render(data, saltenv="base", sls="", **kwargs):
    high = {}
    for line in data.read().splitlines()[1:]:
        name, fun, tgt = line.split()
        high[name] = {"local." + fun: [{"tgt": tgt}, {"args": [__salt__["test.echo"](sls)]}]}
    return high
"""

#: Name -> reactor SLS that ask for the same: test.ping of the minion that the event tells of.
SAME: dict[str, str] = {
    "jinja": "greet:\n  local.test.ping:\n    - tgt: {{ data['id'] }}\n",
    "py": "#!py\ndef run():\n    return {'greet': {'local.test.ping': [{'tgt': data['id']}]}}\n",
    "json": '#!jinja|json\n{"greet": {"local.test.ping": [{"tgt": "{{ data.id }}"}]}}\n',
    "mako": "#!mako|yaml\ngreet:\n  local.test.ping:\n    - tgt: ${data['id']}\n",
}


class Heard:
    """Stands for the control link: keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def call(self, command: str, **fields: Any) -> dict[str, Any]:
        self.asked.append((command, fields))
        if fields["fun"] == "test.bug":
            raise RuntimeError("broken")
        if fields["fun"] == "test.refused":
            raise ControlError("UnknownFunction", "no")
        return {"jid": "1"}

    def close(self) -> None:
        pass


@pytest.fixture
def react(
    tmp_path: Path, new_options: Callable[..., MasterOptions], new_role: Callable[[str, MasterOptions], Role]
) -> Callable[..., list[tuple[str, dict[str, Any]]]]:
    """(text of a reactor SLS, more files of the extension directory) -> what the control link was asked for an event."""

    def run(text: str, files: Mapping[str, str] | None = None, **more: Any) -> list[tuple[str, dict[str, Any]]]:
        sls = tmp_path / "greet.sls"
        sls.write_text(text)
        for name, content in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        options = new_options(
            reactor=[{"site/*": [str(sls)]}],
            extension_modules=str(tmp_path / "extmods"),
            file_roots={"base": [str(tmp_path / "salt")]},
            **more,
        )
        heard = Heard()
        role = new_role("reactor", options)
        ended: list[EventTask] = []
        work, _ = asker(role, cast(ControlClient, heard), ended.append)

        def at_once(task: EventTask) -> bool:
            work(task)
            return True

        table = ReactorTable(rows_of(options.reactor), options.id)
        task = EventTask(KeptEvent("1-1", 1, b""), "site/up", {"id": "web1"})
        Reactor(role, ReactorSls(options), table, at_once, ended.append).react(task)
        assert ended == [task]
        return heard.asked

    return run


@pytest.mark.parametrize("name", SAME)
def test_a_reaction_may_be_written_for_any_renderer(react: Callable[..., Any], name: str) -> None:
    ((command, fields),) = react(SAME[name])
    assert (command, fields["fun"], fields["tgt"], fields["arg"]) == ("publish", "test.ping", "web1", [])


@pytest.mark.parametrize(
    ("rows", "kwarg"),
    [
        ("- name: web1\n    - text: up", {"name": "web1", "text": "up"}),
        ("- args:\n      - name: web1", {"name": "web1"}),
        # The ID, which the compiler gives to what has no name, is none of the function's arguments.
        ("- text: up", {"text": "up"}),
    ],
)
def test_a_runner_may_take_a_name(react: Callable[..., Any], rows: str, kwarg: dict[str, Any]) -> None:
    ((command, fields),) = react(f"greet:\n  runner.site.greet:\n    {rows}\n")
    assert (command, fields["fun"], fields["kwarg"]) == ("runner", "site.greet", kwarg)


@pytest.mark.parametrize("place", ["extension_modules", "render_dirs"])
def test_a_reaction_may_be_written_for_a_users_renderer(react: Callable[..., Any], tmp_path: Path, place: str) -> None:
    directory = {"extension_modules": "extmods/renderers", "render_dirs": "mine"}[place]
    more = {"render_dirs": [str(tmp_path / "mine")]} if place == "render_dirs" else {}
    asked = react("#!lines\ngreet test.echo web*\n", {f"{directory}/lines.py": LINES}, **more)
    ((command, fields),) = asked
    assert (command, fields["fun"], fields["tgt"], fields["arg"]) == ("publish", "test.echo", "web*", ["greet"])


def test_a_renderer_that_is_not_there_is_named_in_the_log(
    react: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    assert react("#!lines\ngreet test.echo web*\n") == []
    assert "lines" in caplog.text
    assert "greet.sls" in caplog.text
    assert "site/up" in caplog.text


def test_a_renderer_that_fails_is_told_with_its_reason(
    react: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    assert react("#!lines\ngreet test.echo\n", {"extmods/renderers/lines.py": LINES}) == []
    assert "not enough values to unpack" in caplog.text


def test_a_failing_reaction_stops_none_of_the_next(react: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    text = "".join(f"{name}:\n  local.{fun}:\n    - tgt: web1\n" for name, fun in (
        ("a", "test.refused"), ("b", "test.bug"), ("c", "test.ping")))  # fmt: skip
    text += "d:\n  caller.test.no_such: []\ne:\n  runner.test.arg:\n    - args:\n      - x: 1\n"
    text += "f:\n  wheel.key.accept:\n    - match: {{ data['id'] }}\n"
    asked = react(text)
    assert [fields["fun"] for _, fields in asked] == ["test.refused", "test.bug", "test.ping", "test.arg", "key.accept"]
    assert asked[3][1]["kwarg"] == {"x": 1}
    assert asked[4][1]["kwarg"] == {"match": "web1"}
    for said in ("reaction a to site/up", "reaction b to site/up", "reaction d to site/up"):
        assert said in caplog.text
