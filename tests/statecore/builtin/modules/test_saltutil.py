"""Jobs, refreshing, and users' modules from the tree."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from statecore.host.content import data_files
from statecore.model.errors import CommandError, InvocationError

JOB = {"jid": "20260101000000000001", "fun": "state.apply", "pid": 7}


@pytest.mark.parametrize(
    ("name", "args", "value"),
    [
        ("running", (), [JOB]),
        ("is_running", ("state.*",), [JOB]),
        ("is_running", ("test.*",), []),
        ("find_job", (JOB["jid"],), JOB),
        ("find_job", (20260101000000000001,), JOB),
        ("find_job", ("1",), {}),
        ("refresh_pillar", (), True),
        ("refresh_modules", (), True),
        ("refresh_matchers", (), True),
        ("refresh_grains", (), True),
    ],
)
def test_jobs(plain, name, args, value):
    plain.ports.jobs = [JOB]
    assert plain.call(f"saltutil.{name}", *args) == value


@pytest.mark.parametrize(
    ("name", "args", "nothing"),
    [
        ("running", (), []),
        ("is_running", ("*",), []),
        ("find_job", (JOB["jid"],), {}),
        ("kill_all_jobs", (), []),
        ("term_all_jobs", (), []),
    ],
)
def test_the_job_that_asks_does_not_count(plain, name, args, nothing):
    plain.ports.jobs = [JOB | {"pid": os.getpid()}]
    assert plain.call(f"saltutil.{name}", *args) == nothing


@pytest.mark.parametrize(
    ("name", "args", "number"),
    [("term_job", (), 15), ("kill_job", (), 9), ("signal_job", (10,), 10), ("signal_job", ("usr1",), 10)],
)
def test_signals(plain, name, args, number):
    assert plain.call(f"saltutil.{name}", JOB["jid"], *args) == f"Signal {number} sent to job {JOB['jid']} at pid 1"


def test_a_signal_that_does_not_exist(plain):
    with pytest.raises(CommandError, match="There is no signal 'nope'"):
        plain.call("saltutil.signal_job", "1", "nope")


def test_signals_to_all(plain):
    plain.ports.jobs = [JOB]
    assert len(plain.call("saltutil.term_all_jobs")) == 1
    assert len(plain.call("saltutil.kill_all_jobs")) == 1


def test_sync_copies_and_says_what(plain):
    plain.write("_modules/one.py", "def f(): return 1\n")
    plain.write("_modules/deep/two.py", "x = 1\n")
    plain.write("_modules/notes.txt", "no module\n")
    assert plain.call("saltutil.sync_modules") == ["modules.deep.two", "modules.one"]
    assert (plain.extension_dir / "modules" / "deep" / "two.py").read_text() == "x = 1\n"
    assert plain.ports.asked[-1] == "refresh_modules"
    assert plain.call("saltutil.sync_modules") == []
    plain.loader.refresh()
    assert plain.call("one.f") == 1


def test_sync_follows_changes_and_removals(plain):
    path = plain.write("_states/one.py", "def f(): return 1\n")
    plain.write("_states/two.py", "")
    plain.call("saltutil.sync_states")
    path.write_text("def f(): return 2\n")
    (plain.tree / "_states" / "two.py").unlink()
    assert plain.call("saltutil.sync_states") == ["states.one"]
    assert [each.name for each in (plain.extension_dir / "states").iterdir()] == ["one.py"]


def test_files_are_kept_when_the_option_says_so(plain):
    plain.opts["clean_dynamic_modules"] = False
    plain.write("_states/two.py", "")
    plain.call("saltutil.sync_states")
    (plain.tree / "_states" / "two.py").unlink()
    plain.call("saltutil.sync_states")
    assert (plain.extension_dir / "states" / "two.py").exists()


def test_sync_all(plain):
    plain.write("_grains/g.py", "")
    plain.write("_modules/m.py", "")
    fetched = plain.call("saltutil.sync_all")
    assert {kind: names for kind, names in fetched.items() if names} == {
        "modules": ["modules.m"],
        "grains": ["grains.g"],
    }
    assert {"states", "renderers", "returners", "utils", "output", "matchers", "executors"} <= set(fetched)
    assert plain.ports.asked[-3:] == ["refresh_modules", "refresh_grains", "refresh_pillar"]
    assert plain.call("saltutil.list_extmods") == {"grains": ["g"], "modules": ["m"]}


def test_lists_of_what_may_and_may_not_be_synced(plain):
    for name in ("a", "b", "c"):
        plain.write(f"_modules/{name}.py", "")
    assert plain.call("saltutil.sync_modules", extmod_whitelist="a,b", extmod_blacklist={"modules": ["b"]}) == [
        "modules.a"
    ]


def test_the_environments_of_the_top_file(plain):
    plain.ports.answer = {"base": ["web"]}
    plain.write("_modules/a.py", "")
    assert plain.call("saltutil.sync_modules") == ["modules.a"]
    assert plain.call("saltutil.sync_modules", saltenv="nosuch") == []


def test_no_place_for_modules(plain):
    plain.opts["extension_modules"] = ""
    with pytest.raises(CommandError, match="extension_modules"):
        plain.call("saltutil.sync_modules")


def test_clearing_the_cache_keeps_the_rest(plain):
    for name in ("files", "proc", "archive_hash"):
        (plain.directory / "cache" / name).mkdir(parents=True)
    assert plain.call("saltutil.clear_cache") is True
    assert [each.name for each in (plain.directory / "cache").iterdir()] == ["proc"]


def test_returns_that_are_kept(plain):
    kept = Path(plain.opts["cachedir"]) / "minion_jobs"
    assert plain.call("saltutil.clear_job_cache") is True
    assert "you may need to enable cache_jobs" in plain.call("saltutil.find_cached_job", JOB["jid"])
    plain.opts["cache_jobs"] = True
    assert plain.call("saltutil.find_cached_job", "1") == f"Local jobs cache directory {kept}/1 not found"
    for jid, age in ((JOB["jid"], 13), ("2", 11)):
        data_files.store(kept / jid / "return.p", {"return": True, "jid": jid})
        os.utime(kept / jid, (time.time() - age * 3600,) * 2)
    assert plain.call("saltutil.find_cached_job", int(JOB["jid"])) == {"return": True, "jid": JOB["jid"]}
    assert plain.call("saltutil.clear_job_cache", hours=12) is True
    assert [each.name for each in kept.iterdir()] == ["2"]
    with pytest.raises(InvocationError, match=r"'\.\./2' is not a JID"):
        plain.call("saltutil.find_cached_job", "../2")
    with pytest.raises(InvocationError, match="hours is a number, not 'x'"):
        plain.call("saltutil.clear_job_cache", "x")


def test_the_minions_own_key(plain, tmp_path):
    plain.ports.answer = True
    assert plain.call("saltutil.revoke_auth", preserve_minion_cache=True) is True
    assert plain.ports.asked == [("revoke_auth", {"preserve_minion_cache": True})]
    plain.ports.answer = {"cmd": "revoke_auth"}
    with pytest.raises(CommandError, match="allow_minion_key_revoke"):
        plain.call("saltutil.revoke_auth")
    plain.opts["pki_dir"] = str(tmp_path)
    for name in ("minion.pem", "minion.pub", "minion_master.pub", "other"):
        (tmp_path / name).touch()
    assert plain.call("saltutil.regen_keys") is True
    assert not list(tmp_path.glob("minion*.p*"))
    assert (tmp_path / "other").exists()
    plain.opts["file_client"] = "local"
    with pytest.raises(CommandError, match="this minion has no master"):
        plain.call("saltutil.revoke_auth")
