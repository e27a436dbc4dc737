"""``saltutil`` states: users' modules fetched, told as Salt tells them."""

from __future__ import annotations

import inspect

import pytest

from statecore.builtin.states import saltutil

KINDS = sorted(name for name, _ in inspect.getmembers(saltutil, inspect.isfunction) if name.startswith("sync_"))

#: State -> the directory that it fetches, where that is not its own name.
DIRECTORIES = {"sync_outputters": "output", "sync_all": "modules"}


@pytest.mark.parametrize("state", KINDS)
def test_fetched(state, plain):
    kind = state.removeprefix("sync_")
    directory = DIRECTORIES.get(state, kind)
    plain.write(f"_{directory}/mine.py", "def f():\n    return 1\n")
    told = plain.state(f"saltutil.{state}", test=True, name="n")
    assert (told["result"], told["changes"], told["comment"]) == (None, {}, f"saltutil.{state} would have been run")
    assert not plain.extension_dir.exists()
    told = plain.state(f"saltutil.{state}", name="n", refresh=False)
    changes = {directory if state == "sync_all" else kind: [f"{directory}.mine"]}
    comment = "Sync performed" if state == "sync_all" else f"Updated {kind}."
    assert (told["result"], told["changes"], told["comment"]) == (True, changes, comment)
    told = plain.state(f"saltutil.{state}", name="n")
    assert (told["result"], told["changes"], told["comment"]) == (True, {}, "No updates to sync")


def test_whoever_is_left_out_is(plain):
    plain.write("_modules/mine.py", "")
    plain.write("_modules/other.py", "")
    told = plain.state("saltutil.sync_modules", name="n", extmod_whitelist="other")
    assert told["changes"] == {"modules": ["modules.other"]}


def test_faults_are_told(plain):
    told = plain.state("saltutil.sync_modules", name="n", saltnv="base")
    assert (told["result"], told["comment"]) == (
        False,
        "saltutil.sync_modules takes no argument saltnv; it takes saltenv, refresh, extmod_whitelist, extmod_blacklist",
    )
    told = plain.state("saltutil.sync_modules", name="n", extmod_whitelist={"modules": 5})
    assert told["result"] is False
    assert told["comment"].startswith("Failed to run sync_modules: ")


@pytest.mark.oracle
def test_the_states_are_salts(oracle):
    import subprocess

    asked = "import salt.states.saltutil as s; print(*sorted(n for n in vars(s) if n.startswith('sync_')))"
    done = subprocess.run([oracle.venv / "bin/python", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == KINDS
