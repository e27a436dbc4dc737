"""Sign-in over port 4507, and the rights of requests that carry a user's token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.services.mworker.conftest import Worker

NewWorker = Callable[..., Worker]

pytestmark = pytest.mark.redis

ROWS = {
    "ann": [".*", "@runner", "@wheel", "@jobs"],
    "bob": ["test.*", {"web*": ["state.apply"]}],
    "carl": [{"@runner": ["jobs.list_jobs"]}],
    "nobody": [],
}


@pytest.fixture
def master(new_worker: NewWorker, tmp_path: Path) -> Worker:
    users = tmp_path / "users"
    users.write_text("".join(f"{name}:pw-{name}\n" for name in (*ROWS, "unlisted")))
    made = new_worker(external_auth={"file": {"^filename": str(users), **ROWS}}, eauth_failures_per_minute=0)
    made.accept("web1", "web2", "db1")
    made.events.clear()
    return made


def _login(master: Worker, user: str, **more: Any) -> Any:
    fields = {"username": user, "password": f"pw-{user}", "eauth": "file"} | more
    return master.control("login", "api", **fields)


def _token(master: Worker, user: str) -> str:
    return str(_login(master, user)["token"])


def test_a_user_signs_in(master: Worker) -> None:
    answer = _login(master, "ann")
    assert {name: answer[name] for name in ("name", "eauth", "groups", "perms")} == {
        "name": "ann",
        "eauth": "file",
        "groups": [],
        "perms": ROWS["ann"],
    }
    assert len(answer["token"]) == 64
    assert answer["expire"] - answer["start"] == 43200
    assert len(_login(master, "ann", kind="session")["token"]) == 40
    assert _login(master, "unlisted")["perms"] == []


@pytest.mark.parametrize(
    "fields",
    [
        {"password": "wrong"},
        {"password": ""},
        {"username": "eve"},
        {"eauth": "pam"},
        {"eauth": "^filename"},
        {"eauth": ""},
        {"username": None},
    ],
    ids=str,
)
def test_a_wrong_sign_in_is_refused_in_the_same_words(master: Worker, fields: dict[str, Any]) -> None:
    assert _login(master, "ann", **fields) == ("EauthAuthenticationError", "Authentication failure")


def test_a_password_is_not_logged(master: Worker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    _login(master, "ann", password="hunter2")
    token = _token(master, "ann")
    assert "did not sign in" in caplog.text
    for secret in ("hunter2", "pw-ann", token):
        assert secret not in caplog.text


@pytest.mark.parametrize(
    ("user", "cmd", "fields", "allowed"),
    [
        ("ann", "publish", {"fun": "cmd.run", "tgt": "*", "arg": ["id"]}, True),
        ("ann", "runner", {"fun": "jobs.list_jobs"}, True),
        ("ann", "wheel", {"fun": "key.list_all"}, True),
        ("bob", "publish", {"fun": "test.ping", "tgt": "*"}, True),
        ("bob", "publish", {"fun": "cmd.run", "tgt": "*", "arg": ["id"]}, False),
        ("bob", "publish", {"fun": "state.apply", "tgt": "web*"}, True),
        ("bob", "publish", {"fun": "state.apply", "tgt": "db1"}, False),
        ("bob", "runner", {"fun": "jobs.list_jobs"}, False),
        ("bob", "wheel", {"fun": "key.list_all"}, False),
        ("bob", "find_jobs", {}, True),
        ("carl", "runner", {"fun": "jobs.list_jobs"}, True),
        ("carl", "runner", {"fun": "jobs.rerun"}, False),
        ("nobody", "find_jobs", {}, False),
        ("nobody", "publish", {"fun": "test.ping", "tgt": "*"}, False),
        ("unlisted", "publish", {"fun": "test.ping", "tgt": "*"}, False),
        ("unlisted", "kept_events", {"after": 0}, False),
        ("bob", "kept_events", {"after": 0}, False),
        ("ann", "kept_events", {"after": 0}, True),
    ],
)
@pytest.mark.parametrize("key", ["api", "cli"])
def test_a_token_has_its_users_rights_and_no_others(
    master: Worker, key: str, user: str, cmd: str, fields: dict[str, Any], allowed: bool
) -> None:
    answer = master.control(cmd, key, token=_token(master, user), **fields)
    assert (answer[:1] == ("AuthorizationError",) if isinstance(answer, tuple) else False) is not allowed


def test_a_job_is_recorded_under_the_users_name(master: Worker) -> None:
    job = master.control("publish", "api", token=_token(master, "bob"), fun="test.ping", tgt="web1", user="root")
    load = master.store.jobs.load(job["jid"])
    assert load is not None
    assert load["user"] == "bob"
    assert "token" not in load


@pytest.mark.parametrize("token", ["", "00" * 20, None, 7, ["x"]])
@pytest.mark.parametrize("key", ["cli", "api"])
def test_a_request_with_a_bad_token_never_has_the_keys_rights(master: Worker, key: str, token: object) -> None:
    name, _ = master.control("publish", key, token=token, fun="test.ping", tgt="*")
    assert name == "TokenAuthenticationError"
    assert master.events == []


def test_a_user_signs_out(master: Worker) -> None:
    token, other = _token(master, "ann"), _token(master, "ann")
    assert master.control("token_info", "api", of=token)["name"] == "ann"
    assert master.control("logout", "api", of=token) is True
    assert master.control("token_info", "api", of=token)[0] == "TokenAuthenticationError"
    assert master.control("publish", "api", token=token, fun="test.ping", tgt="*")[0] == "TokenAuthenticationError"
    assert master.control("logout", "api", of=other, everywhere=True) is True
    assert master.control("logout", "api", of=other) is False


@pytest.mark.parametrize(
    ("override", "wanted", "seconds"),
    [
        (False, 60, 60),
        (False, 10**6, 43200),
        (True, 10**6, 10**6),
        (True, "90", 90),
        ({"file": ["ann"]}, 10**6, 10**6),
        ({"file": ["bob"]}, 10**6, 43200),
    ],
)
def test_a_user_may_want_a_shorter_token(
    new_worker: NewWorker, tmp_path: Path, override: object, wanted: object, seconds: int
) -> None:
    (tmp_path / "users").write_text("ann:pw-ann\n")
    rows = {"file": {"^filename": str(tmp_path / "users")}}
    master = new_worker(external_auth=rows, token_expire_user_override=override)
    answer = _login(master, "ann", token_expire=wanted)
    assert round(answer["expire"] - answer["start"]) == seconds
    assert _login(master, "ann", token_expire="soon")[0] == "InvocationError"


def test_guessing_is_slowed_down(new_worker: NewWorker, tmp_path: Path) -> None:
    (tmp_path / "users").write_text("frank:pw-frank\ngina:pw-gina\n")
    master = new_worker(external_auth={"file": {"^filename": str(tmp_path / "users")}}, eauth_failures_per_minute=2)
    guess = {"password": "x", "address": "192.0.2.77"}
    names = [_login(master, "frank", **guess)[0] for _ in range(3)]
    assert names == ["EauthAuthenticationError", "EauthAuthenticationError", "TooManyLogins"]
    # The right password from there is refused too, other addresses are not.
    assert _login(master, "frank", address="192.0.2.77")[0] == "TooManyLogins"
    assert _login(master, "gina", address="192.0.2.78")["name"] == "gina"
    # One user from many addresses.
    for number in range(8):
        _login(master, "frank", password="x", address=f"198.51.100.{number}")
    assert _login(master, "frank", address="203.0.113.1")[0] == "TooManyLogins"
    assert _login(master, "gina", address="203.0.113.1")["name"] == "gina"


def test_the_newest_tokens_of_a_user_stay(new_worker: NewWorker, tmp_path: Path) -> None:
    (tmp_path / "users").write_text("hugo:pw-hugo\n")
    master = new_worker(external_auth={"file": {"^filename": str(tmp_path / "users")}}, eauth_tokens_per_user=2)
    tokens = [_token(master, "hugo") for _ in range(3)]
    known = [isinstance(master.control("token_info", "api", of=token), dict) for token in tokens]
    assert known == [False, True, True]


def test_a_webhook_becomes_an_event(master: Worker) -> None:
    assert master.control("hook", "api", path=["build", "ok"], data={"post": {"a": 1}}) is True
    assert master.events[-1] == ("salt/netapi/hook/build/ok", {"post": {"a": 1}})
    for fields in ({"path": ["a/b"], "data": {}}, {"path": ["a\nb"], "data": {}}, {"path": "x", "data": {}}):
        assert master.control("hook", "api", **fields)[0] == "InvocationError"
    assert master.control("hook", "ann", path=[], data={})[0] == "AuthorizationError"


def test_wheel_answers_as_salts_client_when_asked(master: Worker) -> None:
    answer = master.control("wheel", "api", token=_token(master, "ann"), fun="key.list_all", full=True)
    assert answer["tag"] == f"salt/wheel/{answer['data']['jid']}"
    assert answer["data"]["fun"] == "wheel.key.list_all"
    assert answer["data"]["user"] == "ann"
    assert answer["data"]["success"] is True
    assert answer["data"]["return"]["minions"] == ["db1", "web1", "web2"]


def test_no_password_is_among_the_options_that_are_shown(new_worker: NewWorker) -> None:
    master = new_worker(sharedsecret="s3cret", module_settings={"auth.ldap.bindpw": "b1nd"})
    shown = repr(master.control("wheel", fun="config.values"))
    assert "s3cret" not in shown
    assert "b1nd" not in shown
