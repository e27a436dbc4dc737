"""The way a job travels, end to end: what an operator types, what the minions do, what Redis remembers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.roles.lab import SOON, Held, Lab, until

pytestmark = pytest.mark.roles

BOTH = ["web1", "web2"]
TITLES = {"web1": "The shop", "web2": "The blog"}
MANAGED = ("etc/motd", "etc/sysctl.d/60-managed.conf", "etc/cron.d/tidy", "var/www/html/index.html")

Run = dict[str, dict[str, Any]]


def applied(lab: Lab, *words: str) -> dict[str, Run]:
    """state.apply on both: minion -> ID -> result."""
    returned = lab.salt("*", "state.apply", *words)
    assert sorted(returned) == BOTH
    for minion, run in returned.items():
        assert isinstance(run, dict), (minion, run)
    return {minion: {one["__id__"]: one for one in run.values()} for minion, run in returned.items()}


def changed(run: Run) -> set[str]:
    return {name for name, result in run.items() if result["changes"] or result["result"] is None}


def files(lab: Lab, minion: str) -> dict[str, tuple[bytes, int]]:
    """path -> (content, time of its last change) of everything below the host's root."""
    root = lab.host(minion)
    found = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


@pytest.fixture
def held(lab: Lab) -> Iterator[Held]:
    """A held job that is let go at the end, whatever happens."""
    made = Held(lab)
    yield made
    made.let_go()
    until(
        lambda: lab.salt("*", "saltutil.is_running", "held.*") == {"web1": [], "web2": []}, SOON, "the held job ended"
    )


@pytest.fixture(scope="session")
def first_apply(lab: Lab) -> dict[str, Run]:
    """Results of the first state.apply on two fresh hosts, and of its prediction before."""
    before = {minion: files(lab, minion) for minion in BOTH}
    predicted = applied(lab, "test=True")
    assert {minion: files(lab, minion) for minion in BOTH} == before
    made = applied(lab)
    for minion in BOTH:
        assert changed(predicted[minion]) == changed(made[minion])
        assert {result["result"] for result in predicted[minion].values()} == {None}
    return made


# ------------------------------------------------------------------------------------------------------------------ the tree


def test_both_minions_answer(lab: Lab) -> None:
    lab.pings()


def test_the_first_apply_brings_both_hosts_to_their_state(lab: Lab, first_apply: dict[str, Run]) -> None:
    for minion, run in first_apply.items():
        assert {result["result"] for result in run.values()} == {True}
        assert changed(run) == {"motd", "sysctl", "cron-tidy", "landing-page"}
        for path in MANAGED:
            assert (lab.host(minion) / path).is_file()
        page = (lab.host(minion) / "var/www/html/index.html").read_text()
        assert f"<h1>{TITLES[minion]}</h1>" in page
        assert f"This is {minion}, a " in page


@pytest.mark.usefixtures("first_apply")
def test_the_second_apply_changes_nothing(lab: Lab) -> None:
    before = {minion: files(lab, minion) for minion in BOTH}
    for run in applied(lab).values():
        assert changed(run) == set()
    assert {minion: files(lab, minion) for minion in BOTH} == before


@pytest.mark.usefixtures("first_apply")
def test_a_pillar_change_is_predicted_and_then_changes_exactly_one_file(lab: Lab) -> None:
    before = {minion: files(lab, minion) for minion in BOTH}
    pillar = lab.tree / "pillar" / "web1.sls"
    pillar.write_text(pillar.read_text().replace("The shop", "The new shop"))

    predicted = applied(lab, "test=True")
    assert {minion: changed(run) for minion, run in predicted.items()} == {"web1": {"landing-page"}, "web2": set()}
    assert predicted["web1"]["landing-page"]["result"] is None
    assert {minion: files(lab, minion) for minion in BOTH} == before

    made = applied(lab)
    assert {minion: changed(run) for minion, run in made.items()} == {"web1": {"landing-page"}, "web2": set()}
    assert "+<h1>The new shop</h1>" in made["web1"]["landing-page"]["changes"]["diff"]
    after = files(lab, "web1")
    assert {path for path in after if after[path] != before["web1"].get(path)} == {"var/www/html/index.html"}
    assert after.keys() == before["web1"].keys()
    assert files(lab, "web2") == before["web2"]

    pillar.write_text(pillar.read_text().replace("The new shop", "The shop"))
    assert changed(applied(lab)["web1"]) == {"landing-page"}


@pytest.mark.usefixtures("first_apply")
def test_a_run_looks_as_salts_does(lab: Lab) -> None:
    said = lab.ok("salt", "web1", "state.apply", "base.motd").out
    assert re.match(
        r"web1:\n----------\n          ID: motd\n    Function: file\.managed\n        Name: /etc/motd\n"
        r"      Result: True\n     Comment: File /etc/motd is in the correct state\n",
        said,
    ), said
    assert (
        "\nSummary for web1\n------------\nSucceeded: 1\nFailed:    0\n------------\nTotal states run:     1\n" in said
    )


@pytest.mark.usefixtures("first_apply")
def test_an_event_of_a_minion_makes_the_reactor_put_it_right(lab: Lab) -> None:
    page = lab.host("web2") / "var/www/html/index.html"
    page.unlink()
    assert lab.salt("web2", "event.send", "site/refresh") == {"web2": True}
    until(page.exists, SOON, "the page put back by the reactor")
    jobs = lab.runner("jobs.list_jobs", "search_function=state.apply")
    assert any(job["User"] == "Reactor" and job["Target"] == "web2" for job in jobs.values()), jobs


@pytest.mark.usefixtures("first_apply")
def test_salt_call_where_nothing_can_be_kept(lab: Lab) -> None:
    """A host whose disk takes nothing any more is one to be looked into."""
    here = ("--cachedir", str(lab.root / "minions" / "web1" / "minion" / "no-directory"), "--out", "json")
    pillar = lab.call("web1", *here, "pillar.get", "owner", "unmask=True")
    assert json.loads(pillar.out)["local"].endswith(" team"), str(pillar)
    for words, said in (
        (("state.apply",), "cannot be written to cachedir: "),
        (("saltutil.refresh_pillar",), "the refresh cannot be requested: "),
    ):
        answer = lab.call("web1", *here, *words)
        assert answer.code == 1, str(answer)
        assert said in answer.err, str(answer)
        assert answer.out == "", str(answer)
        assert "Traceback" not in answer.err


def test_salt_call_with_the_master(lab: Lab) -> None:
    answer = lab.call("web1", "--out", "json", "state.apply", "base.motd")
    assert answer.code == 0, answer
    (result,) = answer.data["local"].values()
    assert (result["result"], result["changes"]) == (True, {})
    owner = lab.call("web1", "--out", "json", "pillar.get", "owner", "unmask=True")
    assert owner.data == {"local": "the shop team"}, owner
    missing = lab.call("web1", "--retcode-passthrough", "state.apply", "no.such.sls")
    assert missing.code == 1, missing
    # What salt-call did is in the job cache, too.
    jobs = lab.runner("jobs.list_jobs", "search_function=pillar.get", "search_target=web1")
    assert jobs, "salt-call left no job"


# ------------------------------------------------------------------------------------------------------------------- targets


@pytest.mark.parametrize(
    ("words", "minions"),
    [
        (("*",), BOTH),
        (("web?",), BOTH),
        (("web[2-9]",), ["web2"]),
        (("-L", "web1,web2"), BOTH),
        (("-L", "web2"), ["web2"]),
        (("-E", "web(1|3)"), ["web1"]),
        (("-G", "id:web2"), ["web2"]),
        (("-G", "userland:none"), BOTH),
        (("-P", "id:web[1]"), ["web1"]),
        (("-I", "owner:the shop team"), ["web1"]),
        (("-I", "web:title:The blog"), ["web2"]),
        (("-J", "owner:the (shop|blog) team"), BOTH),
        (("-S", "127.0.0.1"), BOTH),
        (("-S", "127.0.0.0/8"), BOTH),
        (("-C", "G@id:web1 or web2"), BOTH),
        (("-C", "web* and not ( L@web1 or E@nothing )"), ["web2"]),
        (("-C", "I@web:title:The?shop and S@127.0.0.0/8"), ["web1"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_targets(lab: Lab, words: tuple[str, ...], minions: list[str]) -> None:
    assert lab.salt(*words, "test.ping") == dict.fromkeys(minions, True)


@pytest.mark.parametrize(
    "words",
    [
        ("db*",),
        ("-L", "db1,db2"),
        ("-E", "db.*"),
        ("-G", "os:Plan9"),
        ("-I", "owner:nobody"),
        ("-S", "203.0.113.0/24"),
        ("-C", "web1 and web2"),
        ("-P", "os:Plan.*"),
    ],
    ids=" ".join,
)
def test_nobody_is_meant(lab: Lab, words: tuple[str, ...]) -> None:
    answer = lab.run("salt", *words, "test.ping")
    assert answer.code == 2, answer
    assert answer.out == "No minions matched the target. No command was sent, no jid was assigned.\n"
    assert answer.err == "ERROR: No return received\n"


def test_a_named_minion_that_does_not_exist_did_not_return(lab: Lab) -> None:
    answer = lab.run("salt", "-L", "web1,db1", "test.ping")
    assert answer.code == 1, answer
    assert "web1:\n    True\n" in answer.out, answer
    assert "db1:\n    Minion did not return. [No response]" in answer.out, answer


# ---------------------------------------------------------------------------------------------------------------------- jobs


def test_an_asynchronous_job_and_its_traces(lab: Lab) -> None:
    said = lab.ok("salt", "--async", "*", "test.echo", "hello").out
    jid = said.removeprefix("Executed command with job ID: ").strip()
    assert re.fullmatch(r"\d{20}", jid), said
    both = {"web1": "hello", "web2": "hello"}
    until(lambda: lab.runner("jobs.lookup_jid", jid) == both, SOON, "both results in the job cache")

    job = lab.runner("jobs.list_job", jid)
    assert (job["jid"], job["Function"], job["Arguments"], job["Target"]) == (jid, "test.echo", ["hello"], "*")
    assert job["Minions"] == BOTH
    assert {minion: result["return"] for minion, result in job["Result"].items()} == both
    listed = lab.runner("jobs.list_jobs")
    assert listed[jid] == {name: job[name] for name in listed[jid]}
    assert list(listed) == sorted(listed)


def test_what_redis_remembers_of_a_job(lab: Lab) -> None:
    """The keys of Salt's Redis returner, and our own (docs/redis.md)."""
    said = lab.ok("salt", "--async", "*", "test.echo", "kept").out
    jid = said.split()[-1]
    redis = lab.redis()
    until(lambda: redis.hlen(f"ret:{jid}") == len(BOTH), SOON, "both returns in Redis")
    load = json.loads(redis.get(f"load:{jid}") or "")
    assert (load["jid"], load["fun"], load["arg"], load["tgt"], load["tgt_type"]) == (
        jid,
        "test.echo",
        ["kept"],
        "*",
        "glob",
    )
    for minion, text in redis.hgetall(f"ret:{jid}").items():
        returned = json.loads(text)
        assert (returned["id"], returned["return"], returned["retcode"], returned["success"]) == (
            minion,
            "kept",
            0,
            True,
        )
    assert redis.smembers(f"salt:job:{jid}:minions") == set(BOTH)
    meta = redis.hgetall(f"salt:job:{jid}")
    assert (meta["expected"], meta["returned"], meta["failed"]) == ("2", "2", "0")
    assert redis.zscore("salt:jobs", jid)
    assert redis.get("web1:test.echo") == jid
    assert redis.smembers("minions") >= set(BOTH)
    for key in (f"load:{jid}", f"ret:{jid}", f"salt:job:{jid}", f"salt:job:{jid}:minions", "web1:test.echo"):
        assert 0 < redis.ttl(key) <= 86400, key


def test_a_running_job_is_seen_from_everywhere(lab: Lab, held: Held) -> None:
    jid = held.publish()
    active = lab.runner("jobs.active")
    assert list(active) == [jid], "the job that asks is not itself active"
    assert sorted(minion for row in active[jid]["Running"] for minion in row) == BOTH
    assert active[jid]["Returned"] == []

    running = lab.salt("*", "saltutil.running")
    assert {minion: [job["jid"] for job in jobs] for minion, jobs in running.items()} == {name: [jid] for name in BOTH}
    found = lab.salt("*", "saltutil.find_job", jid)
    assert {minion: job["fun"] for minion, job in found.items()} == dict.fromkeys(BOTH, "held.wait")
    assert all(Path(f"/proc/{job['pid']}").exists() for job in found.values())
    assert lab.salt("*", "saltutil.is_running", "held.*") == running
    assert lab.salt("*", "saltutil.is_running", "state.*") == {"web1": [], "web2": []}
    assert lab.salt("*", "saltutil.find_job", "20200101000000000000") == {"web1": {}, "web2": {}}

    held.let_go()
    until(lambda: lab.runner("jobs.lookup_jid", jid) == dict.fromkeys(BOTH, True), SOON, "the held job's results")
    assert lab.runner("jobs.active") == {}


def test_a_job_is_killed(lab: Lab, held: Held) -> None:
    jid = held.publish()
    pids = {minion: job["pid"] for minion, job in lab.salt("*", "saltutil.find_job", jid).items()}
    said = lab.salt("*", "saltutil.kill_job", jid)
    assert said == {minion: f"Signal 9 sent to job {jid} at pid {pid}" for minion, pid in pids.items()}
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids.values()), SOON, "the jobbers are gone")
    assert lab.salt("*", "saltutil.running") == {"web1": [], "web2": []}
    lab.pings()


def test_ctrl_c_prints_the_jid_and_leaves_the_job_running(lab: Lab, held: Held) -> None:
    running = lab.started("salt", *held.words())
    held.await_started()
    running.send_signal(signal.SIGINT)
    answer = lab.finished(running)
    assert answer.code == 0, answer
    assert "Exiting gracefully on Ctrl-c" in answer.err, answer
    found = re.search(r"This job's jid is: (\d{20})\n", answer.err)
    assert found, answer
    assert f"salt-run jobs.lookup_jid {found[1]}" in answer.err
    assert list(lab.runner("jobs.active")) == [found[1]]
    held.let_go()
    until(lambda: lab.runner("jobs.lookup_jid", found[1]) == dict.fromkeys(BOTH, True), SOON, "its results")


def test_salt_waits_for_a_job_that_still_runs(lab: Lab, held: Held) -> None:
    """Longer than the timeout, for the minions say that they are at it."""
    running = lab.started("salt", "-t", "1", "--out", "json", "--static", *held.words())
    held.await_started()
    before = lab.metric("publisher", "salt_jobs_published_total")

    def asked_again() -> bool:
        return lab.metric("publisher", "salt_jobs_published_total") > before

    until(asked_again, SOON, "salt asks what became of the job")
    held.let_go()
    answer = lab.finished(running)
    assert (answer.code, answer.data) == (0, dict.fromkeys(BOTH, True)), answer


def test_two_state_runs_at_once_are_refused(lab: Lab, held: Held) -> None:
    jid = lab.ok("salt", "--async", *held.state_words()).out.split()[-1]
    held.await_started()
    refused = lab.run("salt", "--out", "json", "--static", "*", "state.apply", "base.motd")
    assert refused.code == 1, refused
    for minion in BOTH:
        assert 'The function "state.apply" is running as PID' in refused.data[minion][0], refused
    called = lab.call("web1", "--out", "json", "state.apply", "base.motd")
    assert called.data["local"][0].endswith(f" with jid {jid}"), called
    held.let_go()
    until(lambda: sorted(lab.redis().hkeys(f"ret:{jid}")) == BOTH, SOON, "the run's results")


def test_a_state_run_waits_for_another_and_can_be_ended(lab: Lab, held: Held) -> None:
    first = lab.ok("salt", "--async", *held.state_words(), "terse=True").out.split()[-1]
    held.await_started()
    second = lab.ok("salt", "--async", "*", "state.apply", "base.motd", "queue=True").out.split()[-1]
    until(lambda: all(len(told) == 2 for told in lab.salt("*", "state.running").values()), SOON, "both are known")
    assert lab.salt("*", "state.soft_kill", second) == {"web1": None, "web2": None}
    assert list(lab.salt("*", "state.get_pauses")["web1"]) == [second]
    held.let_go()
    for jid in (first, second):
        until(lambda jid=jid: sorted(lab.redis().hkeys(f"ret:{jid}")) == BOTH, SOON, "the runs' results")
    # It was told to end before its first state.
    assert lab.runner("jobs.lookup_jid", second) == {"web1": {}, "web2": {}}
    assert lab.salt("*", "state.running") == {"web1": [], "web2": []}


def test_manage(lab: Lab) -> None:
    assert lab.runner("manage.up") == BOTH
    assert lab.runner("manage.down") == []
    assert lab.runner("manage.status") == {"up": BOTH, "down": []}
    assert lab.runner("manage.present") == BOTH


def test_events_as_lines(lab: Lab) -> None:
    """salt-run state.event shows a job from beginning to end."""
    watching = lab.started("salt-run", "state.event", "salt/job/*", "count=3")
    # It says nothing before the first event, so events are made until it has seen enough.
    until(lambda: lab.ok("salt", "web1", "test.ping") and watching.poll() is not None, SOON, "three events")
    answer = lab.finished(watching)
    assert answer.code == 0, answer
    lines = [line.split("\t", 1) for line in answer.out.splitlines()]
    assert len(lines) == 3
    for tag, data in lines:
        assert re.fullmatch(r"salt/job/\d{20}/(new|publish|ret/web1)", tag), tag
        assert tag.split("/")[2] == json.loads(data)["jid"]


# -------------------------------------------------------------------------------------------------------- files and modules


def test_a_file_comes_from_the_master_in_pieces(lab: Lab) -> None:
    content = os.urandom(3 * 1024 * 1024 + 17)
    (lab.tree / "salt" / "big.bin").write_bytes(content)
    (result,) = lab.salt("web1", "state.single", "file.managed", "/var/tmp/big.bin", "source=salt://big.bin")[
        "web1"
    ].values()
    assert result["result"] is True, result
    assert (lab.host("web1") / "var/tmp/big.bin").read_bytes() == content


def test_a_users_module_comes_and_goes(lab: Lab) -> None:
    path = lab.tree / "salt" / "_modules" / "shop.py"
    path.write_text('def till(x=1):\n    """Counts."""\n    return {"till": x, "id": __grains__["id"]}\n')
    synced = lab.salt("*", "saltutil.sync_all")
    assert {minion: kinds["modules"] for minion, kinds in synced.items()} == {name: ["modules.shop"] for name in BOTH}
    assert lab.salt("*", "shop.till", "x=3") == {name: {"till": 3, "id": name} for name in BOTH}
    path.unlink()
    lab.salt("*", "saltutil.sync_all")
    gone = lab.run("salt", "*", "shop.till")
    assert gone.code == 1, gone
    assert "'shop.till' is not available." in gone.out


def test_pillar_is_read_anew_when_asked_for(lab: Lab) -> None:
    defaults = lab.tree / "pillar" / "defaults.sls"
    before = defaults.read_text()
    defaults.write_text(before + "\nseason: winter\n")
    try:
        assert lab.salt("*", "pillar.get", "season", "unmask=True") == {"web1": "", "web2": ""}
        assert lab.salt("*", "saltutil.refresh_pillar") == dict.fromkeys(BOTH, True)
        assert lab.salt("*", "pillar.get", "season", "unmask=True") == dict.fromkeys(BOTH, "winter")
        until(
            lambda: lab.run("salt", "-I", "season:winter", "test.ping").code == 0, SOON, "the target by the new pillar"
        )
    finally:
        defaults.write_text(before)
        lab.salt("*", "saltutil.refresh_pillar")


def test_a_grain_is_set_and_targeted(lab: Lab) -> None:
    assert lab.salt("web1", "grains.setval", "rack", "7") == {"web1": {"rack": 7}}
    until(lambda: lab.run("salt", "-G", "rack:7", "test.ping").code == 0, SOON, "the target by the new grain")
    assert lab.salt("-G", "rack:7", "test.ping") == {"web1": True}
    assert lab.salt("*", "grains.get", "rack") == {"web1": 7, "web2": ""}


def test_several_functions_in_one_job(lab: Lab) -> None:
    returned = lab.salt("*", "test.ping,test.echo", ",", "hi")
    assert returned == {name: {"test.ping": True, "test.echo": "hi"} for name in BOTH}


def test_batches(lab: Lab) -> None:
    answer = lab.ok("salt", "-b", "1", "*", "test.ping")
    assert "Executing run on ['web1']" in answer.out, answer
    assert "Executing run on ['web2']" in answer.out, answer


def give_a_shell(root: Path) -> None:
    """The machine's /bin/sh with its libraries, copied into a host: enough of a userland for cmd.run."""
    shell = Path("/bin/sh").resolve()
    libraries = re.findall(
        r"(/\S+) \(0x", subprocess.run(["ldd", str(shell)], capture_output=True, text=True, check=True).stdout
    )
    for source in (shell, *map(Path, libraries)):
        place = root / ("bin/sh" if source == shell else str(source).lstrip("/"))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source.resolve(), place)


def test_commands_run_in_the_managed_host(lab: Lab) -> None:
    refused = lab.run("salt", "web2", "cmd.run", "echo hello")
    assert refused.code == 1, refused
    assert "has no /bin/sh: it is a plain directory tree without a userland" in refused.out, refused
    if os.geteuid():
        pytest.skip("the rest runs by chroot, and chroot needs root")
    give_a_shell(lab.host("web1"))
    assert lab.salt(
        "web1", "cmd.run", "echo hello; cat() { while read -r l; do echo $l; done; }; cat < /etc/hostname"
    ) == {"web1": "hello\nweb1"}
    failed = lab.run("salt", "--out", "json", "--static", "web1", "cmd.run_all", "echo no >&2; exit 3")
    assert failed.code == 1, failed
    assert {name: failed.data["web1"][name] for name in ("retcode", "stderr", "stdout")} == {
        "retcode": 3,
        "stderr": "no",
        "stdout": "",
    }


# ----------------------------------------------------------------------------------------------------------------- salt-cp


def test_files_and_directories_are_brought_to_minions(lab: Lab, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "css").mkdir(parents=True)
    (site / "empty").mkdir()
    large = os.urandom(250_000)
    (site / "large.bin").write_bytes(large)
    (site / "css" / "a.css").write_text("body {}\n")
    (site / "css" / "a.css").chmod(0o640)
    (tmp_path / "nothing").write_bytes(b"")
    answer = lab.ok("salt-cp", "*", str(site), str(tmp_path / "nothing"), "/srv/brought/", "--out=json")
    names = ["css/a.css", "empty", "large.bin"]
    expected = dict.fromkeys([*(f"/srv/brought/site/{name}" for name in names), "/srv/brought/nothing"], True)
    assert answer.data == dict.fromkeys(BOTH, expected)
    for minion in BOTH:
        there = lab.host(minion) / "srv" / "brought"
        assert (there / "site" / "large.bin").read_bytes() == large
        assert (there / "site" / "css" / "a.css").stat().st_mode & 0o777 == 0o640
        assert list((there / "site" / "empty").iterdir()) == []
        assert (there / "nothing").read_bytes() == b""


def test_a_minion_that_cannot_take_a_file_says_why(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "app.conf").write_text("a = 1\n")
    (lab.host("web1") / "srv" / "blocked").write_text("a file")
    answer = lab.run("salt-cp", "-L", "web1,web2", str(tmp_path / "app.conf"), "/srv/blocked/app.conf", "--out=json")
    assert answer.code == 1
    said = answer.data
    assert said["web2"] == {"/srv/blocked/app.conf": True}
    assert "blocked" in said["web1"]["/srv/blocked/app.conf"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("web*", "/no/such/source", "/srv/x"), 42, "/no/such/source does not exist"),
        (("nobody*", "/etc/hostname", "/srv/x"), 2, "No minions matched the target"),
        (("web*", "/srv/x"), 64, "a target, a source and a destination are needed"),
    ],
)
def test_what_cannot_be_brought(lab: Lab, words: tuple[str, ...], code: int, said: str) -> None:
    answer = lab.run("salt-cp", *words)
    assert answer.code == code, answer
    assert said in answer.out + answer.err
