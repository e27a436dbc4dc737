"""``salt --region`` against scripted masters of several regions: what is asked of each, the one answer, and the exit code."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from saltern.cli import regions, salt
from saltern.cli import run as salt_run
from saltern.cli.context import CommandContext
from saltern.cli.region_choice import Region, chosen_regions, load_region, names_of_regions
from saltern.cli.request import parse_request
from saltern.cli.sign_in import ask_once
from saltern.kit.command.command_line import CommandError
from saltern.kit.config.master import ClientOptions, ConfigError
from saltern.kit.links.control import ControlError, ControlTimeout
from saltwire.jid import is_jid

AWAY = ControlTimeout("tcp://us:4507", 10)
REGIONS = {"eu": "/eu", "us": "/us"}


class Fleet:
    """Masters by region; publications get the JID that they ask for, and minions that return do so at once."""

    def __init__(self, new: Callable[..., Any], **regions: dict[str, Any]) -> None:
        self.masters = {name: new({"job_returns": {}}) for name in regions}
        for name, about in regions.items():
            fake = self.masters[name]
            fake.answers |= {"publish": self._publish(fake, about), **about.get("answers", {})}

    @staticmethod
    def _publish(fake: Any, about: dict[str, Any]) -> Any:
        def publish(fields: dict[str, Any]) -> dict[str, Any]:
            if "error" in about:
                raise about["error"]
            if fields["fun"] == "saltutil.find_job":
                return {"jid": "20260101000000000009", "minions": fields["tgt"], "missing": []}
            jid = fields.get("jid", "20260101000000000001")
            for minion, value in about.get("returns", {}).items():
                more = value if isinstance(value, dict) else {"return": value, "retcode": 0}
                fake.events.append((0.1, f"salt/job/{jid}/ret/{minion}", {"id": minion, **more}))
            minions = about.get("minions", [*about.get("returns", {})])
            return {"jid": jid if minions else None, "minions": minions, "missing": about.get("missing", [])}

        return publish

    def context(self, **options: Any) -> CommandContext:
        own = ClientOptions(user="tester", regions=REGIONS, **options)
        by_port = dict(enumerate(self.masters.values(), 1))

        def load(region: Region) -> ClientOptions:
            return ClientOptions(user="tester", control_port=[*self.masters].index(region.name) + 1)

        #: The master of each thread: each master has a clock of its own, which waiting moves.
        here = threading.local()

        def control(given: ClientOptions, config_dir: str | None) -> Any:
            here.master = by_port[given.control_port]
            return here.master

        return CommandContext(
            load=lambda config_dir: own,
            load_region=load,
            control=control,
            bus=lambda given, config_dir: by_port[given.control_port],
            clock=lambda: here.master.now,
            env={},
            terminal=None,
        )

    def published(self, region: str) -> list[dict[str, Any]]:
        return [fields for fields in self.masters[region].sent("publish") if fields["fun"] != "saltutil.find_job"]


@pytest.fixture
def fleet(master: Callable[..., Any]) -> Callable[..., Fleet]:
    def make(**regions: dict[str, Any]) -> Fleet:
        return Fleet(master, **regions)

    return make


def test_all_regions_are_one_answer(fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str]) -> None:
    both = fleet(eu={"returns": {"a": True}, "minions": ["a", "b"]}, us={"returns": {"b": True}, "minions": ["a", "b"]})
    assert salt.run(["*", "test.ping", "--region", "all", "--out=json", "--static"], both.context()) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"a": True, "b": True}
    assert err == ""
    (eu,), (us,) = both.published("eu"), both.published("us")
    # A minion that gets the job from both masters recognises it by its JID.
    assert is_jid(eu["jid"])
    assert eu["jid"] == us["jid"]
    assert eu["request_id"] != us["request_id"]


def test_default_regions_and_one_region(fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str]) -> None:
    both = fleet(eu={"returns": {"a": True}}, us={"returns": {"b": True}})
    assert salt.run(["*", "test.ping"], both.context(default_regions=["all"])) == 0
    assert sorted(capsys.readouterr().out.split()) == ["True", "True", "a:", "b:"]
    both = fleet(eu={"returns": {"a": True}}, us={"returns": {"b": True}})
    assert salt.run(["*", "test.ping", "--region", "us"], both.context(default_regions=["all"])) == 0
    assert capsys.readouterr().out == "b:\n    True\n"
    assert both.published("eu") == []
    # One master names its job itself.
    assert "jid" not in both.published("us")[0]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (AWAY, 69, "no answer from the master at tcp://us:4507"),
        (ControlError("AuthorizationError", "no right"), 1, "ERROR: region us: no right"),
        (ConfigError("no key"), 78, "ERROR: region us: no key"),
    ],
)
def test_a_region_that_fails_is_named_and_the_other_answers(
    fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str], error: Exception, code: int, said: str
) -> None:
    for words, out in (
        (["--out=json"], '{\n    "a": true\n}\n'),
        (["--summary"], "# of minions returned: 1"),
    ):
        both = fleet(eu={"returns": {"a": True}}, us={"error": error})
        assert salt.run(["*", "test.ping", "--region", "eu,us", *words], both.context()) == code
        shown = capsys.readouterr()
        assert out in shown.out
        assert said in shown.err


def test_stock_exit_codes(fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SALTERN_STOCK_EXIT_CODES", "1")
    both = fleet(eu={"returns": {"a": True}}, us={"error": AWAY})
    assert salt.run(["*", "test.ping", "--region", "all"], both.context()) == 0


def test_a_silent_minion_is_shown_once(fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str]) -> None:
    states = {"fun": "x", "now": 120_000, "minions": {"a": {"state": "lost", "since": 60_000, "late": False}}}
    answers = {"job_status": states, "known": {"a": {"key": "accepted", "age": 60.0}}}
    eu = {"minions": ["a"], "answers": answers}
    both = fleet(eu=eu, us={"minions": ["a"]})
    assert salt.run(["*", "test.ping", "--region", "all", "--summary"], both.context()) == 1
    out, err = capsys.readouterr()
    assert out.count("a:\n") == 1
    assert "Minion did not return. [Lost]\n    Told by the master of region eu." in out
    assert "salt-run --region eu jobs.lookup_jid" in out
    assert "# of minions targeted: 1" in out
    assert err == "ERROR: Minions returned with non-zero exit code\n"


def test_a_region_that_fails_while_the_job_runs(
    fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str]
) -> None:
    both = fleet(eu={"returns": {"a": True}}, us={"minions": ["a", "b"], "answers": {"job_returns": AWAY}})
    both.masters["us"].hears = False
    assert salt.run(["*", "test.ping", "--region", "all"], both.context()) == 69
    out, err = capsys.readouterr()
    assert "a:\n    True\n" in out
    assert "b:\n    Minion did not return. [Region us does not answer]\n" in out
    assert "[WARNING ] region us: no answer from the event bus" in err
    assert "ERROR: region us: no answer from the master at tcp://us:4507" in err


def test_a_second_result_is_told(fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str]) -> None:
    failed = {"return": False, "retcode": 2}
    eu = {"returns": {"a": True, "b": True}}
    both = fleet(eu=eu, us={"returns": {"a": failed, "c": True}, "minions": ["a", "c"]})
    code = salt.run(["*", "test.ping", "--region", "all", "--out=ndjson"], both.context())
    out, err = capsys.readouterr()
    assert sorted(name for line in out.splitlines() for name in json.loads(line)) == ["a", "b", "c"]
    assert code == 1
    assert err.count("ERROR: Minions returned with non-zero exit code") == 1


def test_async_and_preview(fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str]) -> None:
    both = fleet(eu={"minions": ["a"]}, us={"minions": ["b"]})
    assert salt.run(["*", "test.ping", "--async", "--region", "all"], both.context()) == 0
    jid = both.published("eu")[0]["jid"]
    assert capsys.readouterr().out == f"Executed command with job ID: {jid}\n"
    targets = {"minions": ["b", "a"], "missing": []}
    both = fleet(eu={"answers": {"targets": targets}}, us={"answers": {"targets": AWAY}})
    words = ["*", "--preview-target", "--out=json", "--region", "all"]
    assert salt.run(words, both.context()) == 69
    assert json.loads(capsys.readouterr().out) == ["a", "b"]


@pytest.mark.parametrize("words", [["test.ping"], ["test.ping", "--async"]])
def test_no_match_in_any_region(
    fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    both = fleet(eu={}, us={"missing": ["x"]})
    assert salt.run(["x", *words, "--region", "all"], both.context()) == 2
    assert capsys.readouterr().out.startswith("No minions matched the target.")
    both = fleet(eu={}, us={"error": AWAY})
    assert salt.run(["x", *words, "--region", "all"], both.context()) == 69


def test_an_id_without_a_key_in_one_region_returns_in_another(
    fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str]
) -> None:
    both = fleet(eu={"returns": {"a": True}, "missing": ["b"]}, us={"returns": {"b": True}, "missing": ["a"]})
    assert salt.run(["-L", "a,b", "test.ping", "--region", "all"], both.context()) == 0
    assert "did not return" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--batch", "2"], "--batch counts the minions of one region"),
        (["--subset", "2"], "--subset counts the minions of one region"),
        (["-a", "file", "-T", "--username", "u", "--password", "p"], "-T keeps the token of one master"),
        (["--batch-safe-limit", "2"], "the target matches 2 minions or more"),
    ],
)
def test_options_that_are_of_one_master(
    fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    one = {"targets": {"minions": ["a"], "missing": []}}
    both = fleet(eu={"answers": one}, us={"answers": {"targets": {"minions": ["b"], "missing": []}}})
    assert salt.run(["*", "test.ping", "--region", "all", *words], both.context()) == 64
    assert said in capsys.readouterr().err
    assert both.published("eu") == []


def test_a_user_signs_in_at_each_master(fleet: Callable[..., Fleet]) -> None:
    answers = {"login": {"token": "t"}, "logout": {}}
    both = fleet(eu={"returns": {"a": True}, "answers": answers}, us={"returns": {"b": True}, "answers": answers})
    words = ["*", "test.ping", "--region", "all", "-a", "file", "--username", "u", "--password", "p"]
    for fake in both.masters.values():
        fake.call = _patient(fake)
    assert salt.run(words, both.context()) == 0
    for fake in both.masters.values():
        assert fake.sent("login") == [{"username": "u", "password": "p", "eauth": "file"}]
        assert fake.sent("logout") == [{"of": "t"}]


def test_ctrl_c_before_a_region_has_the_job(
    fleet: Callable[..., Fleet], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted = threading.Event()

    class Enough(threading.Event):
        def set(self) -> None:
            super().set()
            interrupted.set()

    both = fleet(eu={"error": KeyboardInterrupt()}, us={"returns": {"b": True}})
    monkeypatch.setattr(both.masters["us"], "ready", lambda timeout: interrupted.wait(60))
    monkeypatch.setattr(regions, "threading", SimpleNamespace(Event=Enough, Thread=threading.Thread))
    assert salt.run(["*", "test.ping", "--region", "all"], both.context()) == 0
    assert capsys.readouterr().err == "\nExiting gracefully on Ctrl-c\n"
    assert both.published("us") == []


@pytest.mark.parametrize(
    ("words", "asked", "found"),
    [
        ([], [], ("", "")),
        (["-a", "file"], ["username: ", "password: "], ("answer", "answer")),
        (["-a", "file", "--username", "u"], ["password: "], ("u", "answer")),
        (["-a", "file", "--username", "u", "--password", "p"], [], ("u", "p")),
        (["-a", "oidc"], ["password: "], ("", "answer")),
    ],
)
def test_the_password_is_asked_for_once(words: list[str], asked: list[str], found: tuple[str, str]) -> None:
    questions: list[str] = []

    def ask(prompt: str) -> str:
        questions.append(prompt)
        return "answer"

    flags = parse_request(["*", "test.ping", *words]).flags
    ask_once(flags, ask, ask)
    assert questions == asked
    assert (flags.username, flags.password) == found


def test_a_defect_in_a_region_is_not_hidden(fleet: Callable[..., Fleet]) -> None:
    both = fleet(eu={"returns": {"a": True}}, us={"error": ZeroDivisionError("a defect")})
    with pytest.raises(ZeroDivisionError):
        salt.run(["*", "test.ping", "--region", "all"], both.context())


def test_a_runner_runs_in_one_region(fleet: Callable[..., Fleet], capsys: pytest.CaptureFixture[str]) -> None:
    both = fleet(eu={}, us={"answers": {"runner": {"jid": "7", "tag": "salt/run/7"}}})
    assert salt_run.run(["jobs.active", "--async", "--region", "us"], both.context()) == 0
    assert capsys.readouterr().out == "Executed command with job ID: 7\n"
    assert salt_run.run(["jobs.active", "--region", "all"], both.context()) == 64
    assert "a runner runs in one region" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([], []),
        (["eu"], ["eu"]),
        (["us,eu"], ["us", "eu"]),
        (["us", "eu", "us"], ["us", "eu"]),
        (["all"], ["eu", "us"]),
        (["us", "all"], ["us", "eu"]),
        ([" eu , us "], ["eu", "us"]),
    ],
)
def test_names(given: list[str], names: list[str]) -> None:
    assert names_of_regions(given, ["eu", "us"]) == names


@pytest.mark.parametrize(("word", "said"), [("eus", "did you mean"), ("x", "regions are: eu, us")])
def test_unknown_names(word: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        names_of_regions([word], ["eu", "us"])


def test_no_name_is_wrong() -> None:
    for words in ([""], ["all"]):
        with pytest.raises(CommandError, match="--region needs"):
            chosen_regions(words, ClientOptions(), "/etc/salt")


def test_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ClientOptions(regions={"eu": ".", "us": "regions/us", "ap": str(tmp_path / "ap")})
    found = chosen_regions(["all"], options, str(tmp_path))
    assert found == [
        Region("eu", str(tmp_path), own=True),
        Region("us", str(tmp_path / "regions" / "us")),
        Region("ap", str(tmp_path / "ap")),
    ]
    with pytest.raises(ConfigError, match="region us: there is no file"):
        load_region(found[1])
    for directory, port in ((tmp_path, 1), (tmp_path / "regions" / "us", 2)):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "master").write_text(f"control_port: {port}\n")
    # The environment is about the command's own master.
    monkeypatch.setenv("SALTERN_CONTROL_PORT", "3")
    assert [load_region(region).control_port for region in found[:2]] == [3, 2]


def _patient(fake: Any) -> Callable[..., Any]:
    """The master's ``call``, which accepts requests without a time limit: logout has none."""
    call = fake.call
    return lambda cmd, timeout=1.0, **fields: call(cmd, timeout=timeout, **fields)
