"""Runs that are requested, switched off, or told to wait: what is kept, where, and what becomes of it. What real Salt does is
compared in ``state_functions``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statecore.model.errors import CommandError, InvocationError

RUN = {"test_|-a_|-a_|-nop": {"result": True, "changes": {}}}
JID = "20260102030405678901"


def test_a_request_survives_the_process(plain):
    plain.ports.answer = RUN
    assert plain.call("state.request", "web", pillar={"k": 1}, __pub_jid="1") == RUN
    kept = {"default": {"test_run": RUN, "mods": "web", "kwargs": {"pillar": {"k": 1}, "test": True}}}
    assert plain.call("state.check_request") == kept
    assert plain.call("state.check_request", "default") == kept["default"]
    assert (Path(plain.opts["cachedir"]) / "req_state.p").stat().st_mode & 0o777 == 0o600
    plain.ports.asked.clear()
    assert plain.call("state.run_request", saltenv="dev") == RUN
    assert plain.ports.asked == [("sls", ["web"], {"pillar": {"k": 1}, "saltenv": "dev", "test": False})]
    assert plain.call("state.check_request") == {}
    assert plain.call("state.run_request") == {}


def test_requests_by_name(plain):
    plain.ports.answer = RUN
    plain.call("state.request", "web", name="one")
    plain.call("state.request", name="two")
    plain.call("state.run_request", "one")
    assert list(plain.call("state.check_request")) == ["two"]
    assert plain.call("state.clear_request", "one") is False
    assert plain.call("state.clear_request", "two") is True
    assert plain.call("state.check_request") == {}
    with pytest.raises(InvocationError, match="There is no request 'two'"):
        plain.call("state.check_request", "two")


@pytest.mark.parametrize("answer", [["The function is running"], ["does not compile"]])
def test_a_request_that_was_not_run_is_kept(plain, answer):
    plain.ports.answer = RUN
    plain.call("state.request", "web")
    plain.ports.answer = answer
    assert plain.call("state.run_request") == answer
    assert list(plain.call("state.check_request")) == ["default"]


def test_a_damaged_file_of_requests(plain):
    place = Path(plain.opts["cachedir"]) / "req_state.p"
    place.parent.mkdir()
    place.write_bytes(b"\xc1")
    with pytest.raises(CommandError, match=r"req_state.p is damaged .* it may be deleted"):
        plain.call("state.check_request")
    assert plain.call("state.clear_request") is True
    assert plain.call("state.check_request") == {}


def test_a_request_that_cannot_be_kept_says_so(plain, tmp_path):
    (tmp_path / "file").write_text("")
    plain.opts["cachedir"] = str(tmp_path / "file" / "cache")
    plain.ports.answer = RUN
    with pytest.raises(CommandError, match="cannot be"):
        plain.call("state.request", "web")
    del plain.opts["cachedir"]
    with pytest.raises(CommandError, match="set 'cachedir'"):
        plain.call("state.request", "web")


@pytest.mark.parametrize(
    ("disabled", "mods", "refused"),
    [
        (["web"], "web", ["web"]),
        (["web"], "web,db", ["web"]),
        (["web", "db"], ["web", "db"], ["web", "db"]),
        (["bind.*"], "bind.config", ["bind.config"]),
        (["bind.*"], "bind", []),
        (["bind.*"], "binder.config", []),
        (["highstate"], "web", []),
    ],
)
def test_sls_that_are_switched_off(plain, disabled, mods, refused):
    plain.grains["state_runs_disabled"] = disabled
    ctx = plain.context()
    answer = ctx.call("state.apply", mods)
    if refused:
        assert [sentence.split('"')[1] for sentence in answer] == refused
        assert ctx.scratch["retcode"] == 1
    assert bool(plain.ports.asked) is not bool(refused)


def runs(plain, jid: str = JID) -> None:
    """A state run in progress."""
    place = Path(plain.opts["cachedir"]) / "state_queue"
    place.mkdir(parents=True, exist_ok=True)
    (place / jid).write_text(json.dumps({"jid": jid, "pid": 1, "fun": "state.apply", "waits": False}))
    plain.ports.jobs.append({"jid": jid, "pid": 1, "fun": "state.apply"})


def test_orders_to_a_run(plain):
    runs(plain)
    plain.call("state.pause", int(JID), "vim", 20)
    plain.call("state.pause", JID)
    plain.call("state.soft_kill", JID, "git")
    told = {JID: {"vim": {"duration": 20}, "__all__": {}, "git": {"kill": True}}}
    assert plain.call("state.get_pauses") == told
    assert plain.call("state.get_pauses", [int(JID)]) == told
    assert plain.call("state.get_pauses", "1") == {}
    plain.call("state.resume", JID, "vim")
    assert list(plain.call("state.get_pauses")[JID]) == ["__all__", "git"]
    plain.call("state.rm_pause", JID)
    assert plain.call("state.get_pauses") == {}


def test_only_a_run_in_progress_can_be_told(plain):
    runs(plain, "20260102030405678902")
    with pytest.raises(CommandError, match=f"No state run with the job id {JID} .*; there is 20260102030405678902"):
        plain.call("state.pause", JID)
    with pytest.raises(CommandError, match="No state run with the job id"):
        plain.call("state.soft_kill", JID)
    plain.call("state.resume", JID)


def test_what_a_run_was_told_is_forgotten_when_it_is_over(plain):
    runs(plain)
    plain.call("state.pause", JID)
    plain.ports.jobs.clear()
    assert plain.call("state.get_pauses") == {}
    assert list((Path(plain.opts["cachedir"]) / "state_pause").iterdir()) == []
