"""A rolling upgrade, and its way back: each role of the last release among others of this version, and the other way round.

Minions of both versions are there in every row, and do what they are told. What the last release wrote is there: its keys, its
Redis. Where a row fails, an upgrade of this version from the last one, or its rollback, would stop a master at that step.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from saltern.kit.keys.keygen import make_keys
from tests.roles.conftest import NewLab
from tests.roles.lab import ROLES, ROOT, SOON, until
from tests.roles.versions import LAST_RELEASE, MixedLab, is_present, last_release, unpack

pytestmark = [pytest.mark.roles, pytest.mark.redis]

OLD_MINION, NEW_MINION = MINIONS = ("web1", "web2")

#: What is upgraded in one step, by the names of its processes. Workers are many: one of two, and both.
PARTS: dict[str, set[str]] = {
    **{role: {role} for role in ROLES if role != "mworker"},
    "one worker": {"mworker2"},
    "workers": {"mworker", "mworker2"},
    "operator": {"cli"},
}
#: Who reads what others have recorded: they are asked for the job of the row before.
READERS = {"one worker", "workers", "operator"}
EVERYTHING: set[str] = set().union(*PARTS.values())

#: (what is behind, who of the master runs the last release). The minion of the last release runs it in every row. Neighbours
#: in this order differ by few processes, so that few are started again.
ROWS: dict[str, set[str]] = {
    "everything behind": EVERYTHING,
    **{f"{part} ahead": EVERYTHING - names for part, names in PARTS.items()},
    **{f"{part} behind": names for part, names in PARTS.items()},
    "nothing behind": set(),
}

#: A new reactor reads what workers keep in Redis for it, and workers of the last release keep nothing: workers are upgraded first,
#: and the reactor goes back first (docs/operations). Its reactions are not asked for where an event may be an old worker's.
UNHEARD = {"reactor ahead", "one worker behind", "workers behind"}

#: What a row runs: a state of each minion, and an event that the reactor answers with a job.
SMALL = """\
small:
  test.succeed_with_changes
upgrade/step:
  event.send
"""
ANSWER = """\
answer:
  local.test.echo:
    - tgt: {{ data['id'] | json }}
    - arg: [heard]
"""

#: The operator's patience, and what shows that it was not needed: a command that hears nothing asks once it is over.
PATIENCE, HEARD = 60, 40.0


#: Seconds after which the minions send their event again: one that fires while the bus is replaced is heard by nobody.
AGAIN = 3.0


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last release's code."""
    commit = last_release(LAST_RELEASE)
    if not is_present(commit):
        pytest.skip(f"the last release, {commit}, is not in this clone: git fetch --unshallow --tags")
    return unpack(commit, tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def mixed(old: Path, module_labs: NewLab, tmp_path_factory: pytest.TempPathFactory) -> MixedLab:
    """A master of the last release that has worked for a while, with a minion of each version."""
    answer = tmp_path_factory.mktemp("reactor") / "answer.sls"
    answer.write_text(ANSWER)
    lab = module_labs(
        MixedLab,
        old=old,
        behind=EVERYTHING | {OLD_MINION},
        workers=2,
        options={"reactor": [{"upgrade/step": [str(answer)]}]},
    )
    assert isinstance(lab, MixedLab)
    (lab.tree / "salt" / "small.sls").write_text(SMALL)
    # Keys are made once, by the first version that was there; a later one adds what it needs beside them.
    shutil.rmtree(lab.etc / "keys")
    lab.ok("saltern", "keygen", "--out", str(lab.etc / "keys"))
    make_keys(lab.etc / "keys")
    lab.start_all()
    return lab


@pytest.mark.parametrize("row", ROWS)
def test_a_job_flows_among_two_versions(mixed: MixedLab, row: str) -> None:
    mixed.arrange(ROWS[row] | {OLD_MINION})
    store = mixed.redis()
    last = {minion: store.get(f"{minion}:test.echo") for minion in MINIONS}

    earlier = store.get("web1:state.apply")

    begun = time.monotonic()
    runs = mixed.salt("-t", str(PATIENCE), "*", "state.apply", "small")
    took = time.monotonic() - begun
    assert sorted(runs) == list(MINIONS), runs
    for minion, run in runs.items():
        assert {result["name"]: result["result"] for result in run.values()} == {"small": True, "upgrade/step": True}, (
            minion
        )
    assert took < HEARD, f"the operator heard of no return: {took:.1f} s"

    again = time.monotonic() + AGAIN

    def answered() -> bool:
        nonlocal again
        if time.monotonic() > again:
            again = time.monotonic() + AGAIN
            mixed.salt("*", "event.send", "upgrade/step")
        return all(store.get(f"{minion}:test.echo") not in (None, last[minion]) for minion in MINIONS)

    if row not in UNHEARD:
        until(answered, SOON, "the reactor's jobs are answered")
    if earlier and row.rpartition(" ")[0] in READERS:
        assert sorted(mixed.runner("jobs.lookup_jid", earlier)) == list(MINIONS)
    assert mixed.dead() == {}, mixed.logs()
    assert mixed.tracebacks() == []


def test_each_process_runs_the_version_that_its_row_says(mixed: MixedLab) -> None:
    mixed.arrange({"publisher", OLD_MINION})
    code = {name: mixed.code_of(name) for name in ("publisher", "reqserver", *MINIONS)}
    assert code == {"publisher": mixed.old, "reqserver": ROOT, OLD_MINION: mixed.old, NEW_MINION: ROOT}


def test_every_role_has_its_rows() -> None:
    assert {*ROLES, "mworker2", "cli"} == EVERYTHING
    assert ROWS.keys() > UNHEARD
    assert len(ROWS) == 2 * len(PARTS) + 2


@pytest.mark.parametrize("text", ["", "# only words\n", "v1\nv2\n"])
def test_a_file_that_names_no_single_release_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "last-release"
    path.write_text(text)
    with pytest.raises(ValueError, match="instead of one"):
        last_release(path)


def test_a_commit_that_is_not_here_is_no_failure() -> None:
    assert not is_present("0" * 40)
