"""``salt-key`` against a scripted wheel: texts, questions, what is asked of the master, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import pytest

from saltern.cli import key
from saltern.kit.links.control import ControlError, ControlTimeout

KEYS = {
    "minions": ["web1", "web2"],
    "minions_pre": ["new1", "new2"],
    "minions_rejected": ["bad"],
    "minions_denied": ["new1"],
}
NEW_STATE = {"key.accept": "minions", "key.reject": "minions_rejected", "key.delete": "minions"}


def wheel(fields: dict[str, Any]) -> Any:
    match = fields["kwarg"].get("match")
    if fields["fun"] == "key.list_all":
        return KEYS
    if fields["fun"] == "key.list_match":
        found = {name: [i for i in ids if any(fnmatch(i, m) for m in match.split(","))] for name, ids in KEYS.items()}
        return {name: ids for name, ids in found.items() if ids}
    if fields["fun"] in ("key.finger", "key.key_str"):
        return {"minions": {"web1": "2c:d5:3a"}}
    return {NEW_STATE[fields["fun"]]: match}


def forbidden(question: str) -> str:
    raise AssertionError(f"asked {question!r}")


Ask = Callable[[str], str]


@pytest.fixture
def salt_key(master: Callable[..., Any]) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    def run(*words: str, ask: Ask = forbidden, answer: Any = wheel) -> tuple[int, list[dict[str, Any]]]:
        fake = master({"wheel": answer})
        return key.run(words, fake.context(), ask), fake.sent("wheel")

    return run


ALL = "Accepted Keys:\nweb1\nweb2\nDenied Keys:\nnew1\nUnaccepted Keys:\nnew1\nnew2\nRejected Keys:\nbad\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], ALL),
        (["-L"], ALL),
        (["-l", "all"], ALL),
        (["-l", "acc"], "Accepted Keys:\nweb1\nweb2\n"),
        (["--list", "accepted"], "Accepted Keys:\nweb1\nweb2\n"),
        (["-l", "pre"], "Unaccepted Keys:\nnew1\nnew2\n"),
        (["-l", "un"], "Unaccepted Keys:\nnew1\nnew2\n"),
        (["-l", "rej"], "Rejected Keys:\nbad\n"),
        (["-l", "den"], "Denied Keys:\nnew1\n"),
        (["-f", "web1"], "Accepted Keys:\nweb1:  2c:d5:3a\n"),
        (["-F"], "Accepted Keys:\nweb1:  2c:d5:3a\n"),
        (["-p", "web1"], "Accepted Keys:\nweb1:  2c:d5:3a\n"),
        (["-P"], "Accepted Keys:\nweb1:  2c:d5:3a\n"),
    ],
)
def test_shows(salt_key: Callable[..., Any], words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert salt_key(*words)[0] == 0
    assert capsys.readouterr() == (text, "")


def test_json(salt_key: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert salt_key("-L", "--out=json")[0] == 0
    assert json.loads(capsys.readouterr().out) == KEYS


def test_accept(salt_key: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    code, asked = salt_key("-y", "-a", "new1")
    assert code == 0
    assert capsys.readouterr().out == (
        "The following keys are going to be accepted:\nUnaccepted Keys:\nnew1\nKey for minion new1 accepted.\n"
    )
    assert asked[-1] == {"fun": "key.accept", "kwarg": {"match": ["new1"]}}


def test_accept_with_rejected_and_denied(salt_key: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert salt_key("-y", "-A", "--include-rejected")[1][-1] == {
        "fun": "key.accept",
        "kwarg": {"match": ["new1", "new2", "bad"], "include_rejected": True},
    }
    assert "Rejected Keys:\nbad\n" in capsys.readouterr().out
    assert salt_key("-y", "-a", "bad", "--include-all")[1][-1]["kwarg"] == {"match": ["bad"], "include_rejected": True}
    assert salt_key("-y", "-a", "new1", "--include-denied")[1][-1]["kwarg"]["include_denied"] is True


def test_reject(salt_key: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    code, asked = salt_key("-y", "-r", "web*", "--include-accepted")
    assert code == 0
    assert asked[-1] == {"fun": "key.reject", "kwarg": {"match": ["web1", "web2"], "include_accepted": True}}
    assert capsys.readouterr().out.endswith("Key for minion web1 rejected.\nKey for minion web2 rejected.\n")


def test_delete_means_every_state(salt_key: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    code, asked = salt_key("-y", "-d", "web1,bad")
    assert code == 0
    assert asked[-1] == {"fun": "key.delete", "kwarg": {"match": ["bad", "web1"]}}
    assert capsys.readouterr().out.endswith("Key for minion bad deleted.\nKey for minion web1 deleted.\n")


@pytest.mark.parametrize(
    ("words", "states"),
    [
        (["-a", "nosuch"], "unaccepted"),
        (["-a", "nosuch", "--include-rejected"], "unaccepted or rejected"),
        (["-r", "nosuch", "--include-accepted", "--include-denied"], "unaccepted, accepted or denied"),
        (["-d", "nosuch"], "unaccepted, rejected, accepted or denied"),
    ],
)
def test_no_match(
    salt_key: Callable[..., Any], words: list[str], states: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, asked = salt_key(*words)
    assert code == 0
    assert [one["fun"] for one in asked] == ["key.list_match"]
    assert capsys.readouterr().out == f"The key glob 'nosuch' does not match any {states} keys.\n"


@pytest.mark.parametrize(
    ("action", "answer", "done"),
    [
        ("-a", "", True),
        ("-a", "y", True),
        ("-a", "n", False),
        ("-a", "what", False),
        ("-d", "", False),
        ("-d", "Y", True),
        ("-d", "yes", True),
    ],
)
def test_question(
    salt_key: Callable[..., Any], action: str, answer: str, done: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    questions: list[str] = []

    def ask(question: str) -> str:
        questions.append(question)
        return answer

    code, asked = salt_key(action, "new2", ask=ask)
    assert code == 0
    assert questions == ["Proceed? [n/Y] " if action == "-a" else "Proceed? [N/y] "]
    assert (len(asked) == 2) is done
    assert ("Key for minion new2" in capsys.readouterr().out) is done


def test_nobody_answers(salt_key: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    def ask(question: str) -> str:
        raise EOFError

    code, asked = salt_key("-a", "new2", ask=ask)
    assert code == 1
    assert len(asked) == 1
    assert "-y" in capsys.readouterr().err


def test_ctrl_c_at_the_question(salt_key: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    def ask(question: str) -> str:
        raise KeyboardInterrupt

    code, asked = salt_key("-a", "new2", ask=ask)
    assert code == 0
    assert len(asked) == 1
    assert capsys.readouterr().err == "\nExiting gracefully on Ctrl-c\n"


def test_key_that_changed_meanwhile(salt_key: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    def answer(fields: dict[str, Any]) -> Any:
        return {} if fields["fun"] == "key.accept" else wheel(fields)

    assert salt_key("-y", "-a", "new2", answer=answer)[0] == 1
    assert "Key for minion new2 not accepted" in capsys.readouterr().err


def test_quiet(salt_key: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert salt_key("-q", "-y", "-a", "new2")[0] == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-l", "nosuch"], "'nosuch' is not a valid argument to '--list'"),
        (["-D", "web1"], "-D takes no ids; use -d"),
        (["-a", "web1", "web2"], "separate several ids by commas"),
        (["-a", "x", "-d", "y"], "not allowed with"),
        (["--nosuch"], "--nosuch"),
    ],
)
def test_wrong_command_line(
    salt_key: Callable[..., Any], words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        salt_key(*words)
    assert ended.value.code == 64
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (ControlTimeout("tcp://m:4507", 10), 69, "no answer from the master at tcp://m:4507"),
        (ControlError("AuthorizationError", "cli may not @wheel"), 1, "ERROR: cli may not @wheel"),
    ],
)
def test_refusals(
    salt_key: Callable[..., Any], answer: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert salt_key("-L", answer=answer)[0] == code
    assert said in capsys.readouterr().err


def test_thousands_of_keys_go_in_portions(
    salt_key: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worker that took too long would be asked again, and find nothing left to change."""
    monkeypatch.setitem(KEYS, "minions_pre", [f"new{number:04}" for number in range(1200)])
    code, asked = salt_key("-y", "-A")
    assert code == 0
    assert [len(one["kwarg"]["match"]) for one in asked if one["fun"] == "key.accept"] == [500, 500, 200]
    assert capsys.readouterr().out.count(" accepted.\n") == 1200
