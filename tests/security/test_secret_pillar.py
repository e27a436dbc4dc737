"""Values of pillar that are marked as secret: where an attacker who reads returns, events and logs would look for them."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from saltern.minion.jobs import jobber
from statecore.model.secret_values import SecretValues, secret_paths, values_at
from statecore.model.values import MASK
from statecore.runtime.runtime import Runtime, local_runtime

WORD, KEY_LINE, ODD, PIN = "hunter2-swordfish", "MIIEowIBAAKCAQEA75vkzQ", 'it\'s "odd"\\é', 987654321

PILLAR: dict[str, Any] = {
    "users": {"frank": {"password": WORD, "uid": 1001}, "ann": {"password": ODD, "uid": 1002}},
    "tls": {"key": f"-----BEGIN-----\n{KEY_LINE}\n-----END-----\n"},
    "pins": [{"door": PIN}],
    "greeting": "hello",
    "secret_pillar": ["users:*:password", "tls:key", "pins:*:door"],
}

#: Attack: SLS whose run is searched for the secrets: in the log at level debug, in the events, and in the return.
STATES: Mapping[str, str] = {
    "a command": "x:\n  cmd.run:\n    - name: 'echo {{ pillar.users.frank.password }} > /dev/null'\n",
    "a command as the id": "'echo {{ pillar.users.frank.password }}':\n  cmd.run: []\n",
    "output": "x:\n  cmd.run:\n    - name: 'echo \"$W\"'\n    - env: {W: {{ pillar.users.frank.password }}}\n",
    "output of a command that fails": "x:\n  cmd.run:\n    - name: 'echo \"$W\" >&2; exit 3'\n"
    "    - env: {W: {{ pillar.users.frank.password }}}\n",
    "a command that times out": "x:\n  cmd.run:\n    - name: 'sleep 5 # {{ pillar.users.frank.password }}'\n    - timeout: 0.2\n",
    "a command in a missing directory": "x:\n  cmd.run:\n    - name: 'true'\n    - cwd: /{{ pillar.users.frank.password }}\n",
    "a command with quotes": "x:\n  cmd.run:\n    - name: echo\n    - args: {{ pillar.users.ann.password | json }}\n"
    "    - stdin: {{ pillar.users.ann.password | json }}\n",
    "a command that repeats what it gets": "x:\n  cmd.run:\n    - name: cat\n    - stdin: {{ pillar.users.ann.password | json }}\n",
    "a diff": "{{ opts.cachedir }}/f:\n  file.managed:\n    - contents: 'a {{ pillar.users.frank.password }} b'\n",
    "a diff of a key": "{{ opts.cachedir }}/f:\n  file.managed:\n    - contents_pillar: tls:key\n",
    "a diff of a template": "{{ opts.cachedir }}/f:\n  file.managed:\n    - source: salt://t\n    - template: jinja\n",
    "the name of a file": "{{ opts.cachedir }}/{{ pillar.users.frank.password }}:\n  file.managed:\n    - contents: x\n",
    "a file that cannot be written": "/proc/{{ pillar.users.frank.password }}:\n  file.managed:\n    - contents: x\n",
    "a replaced line": "{{ opts.cachedir }}/g:\n  file.append:\n    - text: {{ pillar.users.frank.password }}\n",
    "a comment": "x:\n  test.configurable_test_state:\n    - comment: {{ pillar.users.frank.password }}\n",
    "a number": "x:\n  test.configurable_test_state:\n    - comment: 'door {{ pillar.pins[0].door }}'\n",
    "a function's return": "x:\n  module.run:\n    - test.echo: [{{ pillar.users.frank.password }}]\n",
    "a number's return": "x:\n  module.run:\n    - test.echo: [{{ pillar.pins[0].door }}]\n",
    "the whole pillar": "x:\n  module.run:\n    - pillar.items: []\n",
    "a wrong argument": "x:\n  test.nop:\n    - name: y\n    - {{ pillar.users.frank.password }}: 1\n",
    "a missing function": "x:\n  test.{{ pillar.users.frank.password }}: []\n",
    "a missing requisite": "x:\n  test.nop:\n    - require: [test: {{ pillar.users.frank.password }}]\n",
    "a failed requisite": "{{ pillar.users.frank.password }}:\n  test.fail_without_changes: []\ny:\n  test.nop:\n"
    "    - require: [test: {{ pillar.users.frank.password }}]\n",
    "a parallel state": "x:\n  cmd.run:\n    - name: 'true {{ pillar.users.frank.password }}'\n    - parallel: True\n",
    "an error of YAML": "x:\n  cmd.run:\n    - name: 'a\n  {{ pillar.users.frank.password }}: [\n",
    "an error of Jinja": "x:\n  cmd.run:\n    - name: {{ pillar.users.frank.password.nothing() }}\n",
    "an error raised by a template": "{{ raise(pillar.users.frank.password) }}\n",
    "an exception of a module": "x:\n  module.run:\n    - test.exception: ['{{ pillar.users.frank.password }}']\n",
    "an event with the name": "'true {{ pillar.users.frank.password }}':\n  cmd.run:\n    - fire_event: True\n",
    "an event": "x:\n  event.send:\n    - name: site/{{ pillar.users.frank.password }}\n"
    "    - data: {word: {{ pillar.users.frank.password }}}\n",
}


class Bus:
    """An event bus that stores the fired events in ``events`` as (tag, data)."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def fire(self, tag: str, data: Mapping[str, object]) -> bool:
        self.events.append((tag, data))
        return True


class OneJob:
    """A job registry in which this process runs one job."""

    def running(self) -> list[dict[str, Any]]:
        return [{"jid": "20260101000000000000", "pid": os.getpid()}]

    def signal(self, jid: str, number: int) -> str:
        return ""


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def minion(tmp_path: Path, bus: Bus, caplog: pytest.LogCaptureFixture) -> Iterator[Runtime]:
    caplog.set_level(logging.DEBUG)
    for name, files in (
        ("tree", {"t": "password: {{ pillar.users.frank.password }}\nkey: {{ pillar.tls.key }}\n"}),
        ("pillar", {"top.sls": "base: {'*': [data]}", "data.sls": json.dumps(PILLAR)}),
        ("cache", {}),
    ):
        (tmp_path / name).mkdir()
        for file, content in files.items():
            (tmp_path / name / file).write_text(content)
    (tmp_path / "tree" / "top.sls").write_text("base: {'*': [secret]}")
    (tmp_path / "tree" / "secret.sls").write_text("x:\n  test.nop: []\n")
    runtime = local_runtime(
        {
            "id": "web1",
            "cachedir": str(tmp_path / "cache"),
            "file_roots": {"base": [str(tmp_path / "tree")]},
            "pillar_roots": {"base": [str(tmp_path / "pillar")]},
            "state_events": True,
        },
        grains={"id": "web1"},
        events=bus,
        jobs=OneJob(),
    )
    yield runtime
    runtime.close()


def _shows_a_secret(*shown: object) -> list[str]:
    text = json.dumps(shown, default=str) + json.dumps(shown, default=str, ensure_ascii=False) + str(shown)
    return [each for each in (WORD, KEY_LINE, str(PIN), ODD, json.dumps(ODD)[1:-1], repr(ODD)[1:-1]) if each in text]


@pytest.mark.parametrize("test", [False, True], ids=["run", "test=True"])
@pytest.mark.parametrize("attack", STATES)
def test_a_highstate_shows_no_secret_pillar(
    attack: str, test: bool, minion: Runtime, bus: Bus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "tree" / "secret.sls").write_text(STATES[attack])
    (tmp_path / "cache" / "f").write_text("before\n")
    returned = minion.call("state.highstate", [], {"test": test})
    assert returned.value
    assert _shows_a_secret(returned, bus.events, caplog.text) == []
    if attack == "a diff":
        (entry,) = returned.value.values()  # type: ignore[attr-defined]
        assert f"+a {MASK} b" in entry["changes"]["diff"]
        written = (tmp_path / "cache" / "f").read_text()
        assert written == ("before\n" if test else f"a {WORD} b\n"), "the state itself must get the value"


#: Attack: (function, arguments) of a job that returns pillar.
JOBS: Mapping[str, tuple[str, list[Any]]] = {
    "pillar.get": ("pillar.get", ["users:frank:password", {"__kwarg__": True, "unmask": True}]),
    "pillar.items": ("pillar.items", [{"__kwarg__": True, "unmask": True}]),
    "pillar.raw": ("pillar.raw", []),
    "pillar.item": ("pillar.item", ["users", {"__kwarg__": True, "unmask": True}]),
    "config.get": ("config.get", ["users:frank:password"]),
    "slsutil.renderer": ("slsutil.renderer", [{"__kwarg__": True, "string": "a: {{ pillar.users.frank.password }}"}]),
    "state.show_sls": ("state.show_sls", ["shown"]),
    "state.show_highstate": ("state.show_highstate", []),
    "state.single": ("state.template_str", ["x:\n  cmd.run:\n    - name: 'true {{ pillar.users.frank.password }}'\n"]),
    "an override": (
        "pillar.items",
        [{"__kwarg__": True, "unmask": True, "pillar": {"users": {"eve": {"password": WORD}}}}],
    ),
}


@pytest.mark.parametrize("attack", JOBS)
def test_a_job_returns_no_secret_pillar(
    attack: str, minion: Runtime, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "tree" / "shown.sls").write_text(STATES["a command"])
    (tmp_path / "tree" / "secret.sls").write_text(STATES["a command"])
    fun, arg = JOBS[attack]
    result = jobber.run(minion, {"jid": "20260101000000000000", "fun": fun, "arg": arg})  # type: ignore[typeddict-item]
    assert MASK in json.dumps(result["return"])
    assert _shows_a_secret(result["return"], caplog.text) == []


def test_arguments_of_a_job_are_shown_without_secret_pillar(minion: Runtime) -> None:
    """A job of a schedule in pillar."""
    load = {"jid": "20260101000000000000", "fun": "pillar.get", "arg": ["users:frank:password", WORD]}
    assert jobber.run(minion, load)["fun_args"] == ["users:frank:password", MASK]  # type: ignore[arg-type]


@pytest.mark.ordinary
def test_other_values_are_shown(minion: Runtime, tmp_path: Path) -> None:
    sls = "x:\n  cmd.run:\n    - name: 'echo {{ pillar.greeting }} {{ pillar.users.frank.uid }}'\n"
    (tmp_path / "tree" / "secret.sls").write_text(sls)
    (entry,) = minion.call("state.highstate").value.values()  # type: ignore[attr-defined]
    assert entry["changes"]["stdout"] == "hello 1001"


@pytest.mark.ordinary
def test_states_that_differ_in_a_secret_stay_apart(minion: Runtime, tmp_path: Path) -> None:
    sls = "{% for user in pillar.users.values() %}\n'echo {{ user.password | json }}':\n  cmd.run: []\n{% endfor %}"
    (tmp_path / "tree" / "secret.sls").write_text(sls.replace("echo {{", "true {{").replace(" | json", " | length"))
    assert len(minion.call("state.highstate").value) == 2  # type: ignore[arg-type]
    values = SecretValues()
    values.add(["aaaa", "bbbb"])
    assert values.hide({"x_aaaa": 1, "x_bbbb": 2}) == {f"x_{MASK}": 1, f"x_{MASK}2": 2}


@pytest.mark.ordinary
@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("users:*:password", [WORD, ODD]),
        ("users:frank", [WORD, 1001]),
        ("*:*:password", [WORD, ODD]),
        ("pins:0:door", [PIN]),
        ("pins:*:*", [PIN]),
        ("users:nobody:password", []),
        ("greeting:below", []),
        ("greet*", ["hello"]),
    ],
)
def test_paths_name_values(path: str, found: list[object]) -> None:
    assert list(values_at(PILLAR, path)) == found


@pytest.mark.ordinary
def test_the_forms_of_the_option() -> None:
    assert secret_paths(None) == []
    assert secret_paths("a:b") == ["a:b"]
    assert secret_paths({"a": True, "b": False, "c": "yes"}) == ["a", "c"]
    with pytest.raises(ValueError, match="secret_pillar is a list of paths"):
        secret_paths(5)


@pytest.mark.ordinary
@pytest.mark.parametrize(
    ("secrets", "value", "shown"),
    [
        (["abc"], ["abc", "xabcx"], [MASK, "xabcx"]),
        (["abcd"], ["abcd", "xabcdx"], [MASK, f"x{MASK}x"]),
        ([True, None, "", 0], [True, None, "", 0, 1], [True, None, "", 0, 1]),
        ([12], [12, "12 days"], [12, "12 days"]),
        ([123456], [123456, "pin 123456", 1234567], [MASK, f"pin {MASK}", 1234567]),
        ([b"bytes"], [b"some bytes", "bytes"], [b"some " + MASK.encode(), MASK]),
        (["long secret", "secret"], ["a long secret"], [f"a {MASK}"]),
    ],
)
def test_what_is_hidden(secrets: list[object], value: object, shown: object) -> None:
    values = SecretValues()
    values.add(secrets)
    assert values.hide(value) == shown


@pytest.mark.ordinary
def test_logs_forget_the_secrets_of_a_closed_runtime(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = [list(handler.filters) for handler in logging.getLogger().handlers]
    runtime = Runtime({"secret_pillar": ["a"]}, files=local_runtime({}).files, pillar={"a": WORD})
    logging.getLogger("x").warning("%s", WORD)
    runtime.close()
    assert WORD not in caplog.text
    assert [list(handler.filters) for handler in logging.getLogger().handlers] == before
