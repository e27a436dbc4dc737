"""Executors: the job's own before the option's, users' and ours, what is not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statecore.builtin.executors import splay
from statecore.model.errors import InvocationError
from statecore.runtime import calls
from statecore.runtime.runtime import Runtime, local_runtime

COUNTING = (
    "def execute(opts, data, func, args, kwargs):\n"
    "    return [opts['id'], data['fun'], args, kwargs, func(*args, **kwargs)]\n"
)
PASSING = "def execute(opts, data, func, args, kwargs):\n    __context__['passed'] = True\n"
REFUSING = "def __virtual__():\n    return False, 'not today'\ndef execute(opts, data, func, args, kwargs): pass\n"


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    folder = tmp_path / "ext/executors"
    folder.mkdir(parents=True)
    for name, text in (("counting", COUNTING), ("passing", PASSING), ("refusing", REFUSING)):
        (folder / f"{name}.py").write_text(text)
    return local_runtime({"id": "web1", "extension_modules": str(tmp_path / "ext"), "module_executors": ["counting"]})


def test_the_option_says_how_a_function_is_run(runtime: Runtime) -> None:
    assert runtime.call("test.echo", ["x"]).value == ["web1", "test.echo", ["x"], {}, "x"]


def test_the_job_goes_before_the_option(runtime: Runtime) -> None:
    assert runtime.call("test.echo", ["x"], job={"module_executors": "direct_call"}).value == "x"


def test_one_that_returns_nothing_leaves_it_to_the_next(runtime: Runtime) -> None:
    returned = runtime.call("test.echo", ["x"], job={"module_executors": ["passing", "direct_call"]})
    assert returned.value == "x"
    assert runtime.context.scratch["passed"] is True


class Told:
    """The events of a job."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def fire(self, tag: str, data: Any) -> bool:
        self.events.append((tag, data))
        return True


@pytest.mark.parametrize(
    ("steps", "whole"),
    [
        ("yield 1\n    yield 'two'", [1, "two"]),
        ("yield {'a': 1}\n    yield {'b': 2}", {"a": 1, "b": 2}),
        ("yield {'a': 1}\n    yield 2", [{"a": 1}, 2]),
        ("yield from ()", {}),
    ],
)
def test_a_generator_is_all_that_it_yields_and_tells_each_part(tmp_path: Path, steps: str, whole: Any) -> None:
    (tmp_path / "ext/modules").mkdir(parents=True)
    (tmp_path / "ext/modules/odd.py").write_text(f"def steps():\n    {steps}\n")
    told = Told()
    runtime = local_runtime({"id": "web1", "extension_modules": str(tmp_path / "ext")}, events=told)
    job = {"jid": "20260101000000000000"}
    assert runtime.call("odd.steps", job=job)[:3] == (whole, 0, True)
    parts = whole if isinstance(whole, list) else [{name: value} for name, value in whole.items()]
    assert told.events == [
        (f"salt/job/20260101000000000000/prog/web1/{number}", {"return": part}) for number, part in enumerate(parts)
    ]
    assert runtime.call("odd.steps").value == whole
    assert len(told.events) == len(parts), "without a job nobody is told"


@pytest.mark.parametrize(
    ("named", "text"),
    [
        (["nothing"], "ERROR executing 'test.ping': Executor 'nothing' is not available"),
        (["refusing"], "Executor 'refusing' is not available: 'refusing' __virtual__ returned False: not today"),
        (["sudo"], "Executor 'sudo' is not available: the option sudo_user names no user"),
        ({"a": 1}, "Wrong executors specification: {'a': 1}. String or non-empty list expected (module_executors)"),
        ([5], "Wrong executors specification: [5]."),
    ],
)
def test_what_is_not_there(runtime: Runtime, named: Any, text: str) -> None:
    returned = runtime.call("test.ping", job={"module_executors": named})
    assert (text in returned.value, returned.success, returned.retcode) == (True, False, 1)


@pytest.mark.parametrize(
    ("job", "opts", "own", "names"),
    [
        ({}, {}, True, ("direct_call",)),
        ({}, {"sudo_user": "ann"}, True, ("sudo",)),
        ({}, {"sudo_user": "ann"}, False, ("direct_call",)),
        ({"module_executors": ["splay", "direct_call"]}, {"sudo_user": "ann"}, True, ("splay", "sudo")),
        ({"module_executors": "splay"}, {"module_executors": ["sudo"]}, True, ("splay",)),
    ],
)
def test_which_there_are(job: dict[str, Any], opts: dict[str, Any], own: bool, names: tuple[str, ...]) -> None:
    assert calls.executors_of(job, opts, own=own) == names


def test_splay_waits_as_long_as_the_id_says(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(splay.time, "sleep", waited.append)
    job = {"module_executors": ["splay", "direct_call"], "executor_opts": {"splaytime": 100}}
    assert runtime.call("test.ping", job=job).value is True
    assert waited == [splay.delay("web1", 100)]
    for wrong in (0, -1, "x", True):
        returned = runtime.call("test.ping", job={**job, "executor_opts": {"splaytime": wrong}})
        assert "splaytime must be a positive number of seconds" in returned.value
    with pytest.raises(InvocationError):
        splay.execute(runtime.context, {"executor_opts": {"splaytime": 0}}, print, [], {})


@pytest.mark.oracle
def test_the_place_of_an_id_is_that_of_salt(oracle: Any) -> None:
    ids = ["web1", "db.example.org", "ü", "a" * 70]
    program = (
        "import json, sys, salt.executors.splay as s\n"
        "told = []\n"
        "for name in json.load(sys.stdin):\n"
        "    s.__grains__ = {'id': name}\n"
        "    s._HASH_VAL = s._get_hash()\n"
        "    told.append(s._calc_splay(300))\n"
        "json.dump(told, sys.stdout)\n"
    )
    assert json.loads(oracle.run("python", "-c", program, stdin=json.dumps(ids))) == [
        splay.delay(each, 300) for each in ids
    ]


def test_sudo_runs_a_salt_call_of_its_own(tmp_path: Path) -> None:
    """With a sudo that only says how it was called."""
    program = tmp_path / "bin/sudo"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nprintf \'{"local": {"return": "%s", "retcode": 3}}\' "$(echo "$*" | tr \'"\' "\'")"\n'
    )
    program.chmod(0o755)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/cmd.py").write_text(
        "import subprocess\n"
        "def run_all(cmd, **kwargs):\n"
        f"    done = subprocess.run(['{program}', *cmd[1:]], capture_output=True, text=True)\n"
        "    return {'retcode': done.returncode, 'stdout': done.stdout, 'stderr': done.stderr}\n"
    )
    options = {
        "id": "web1",
        "sudo_user": "ann",
        "module_dirs": [str(tmp_path / "modules")],
        "conf_file": "/etc/salt/minion",
    }
    runtime = local_runtime(options)
    if runtime.host.which("sudo") is None:
        runtime.host.which = lambda name: f"/usr/bin/{name}"  # type: ignore[method-assign]
    returned = runtime.call("test.arg", ["a b"], {"c": [1]}, {"jid": "20261121120000000000"})
    assert returned.value == "-u ann salt-call --out json --metadata -c /etc/salt -- test.arg a b c=[1]"
    assert returned.retcode == 3


def test_internal_functions_and_helpers_are_no_jobs(runtime: Runtime) -> None:
    """A name with an underscore is for states; a function without ctx is a helper of its file."""
    names = runtime.functions["sys.list_functions"]()
    assert "pip.list" in names
    assert [name for name in names if name.partition(".")[2].startswith("_")] == []
    assert {"aliases.parse", "restartcheck.deleted_maps", "pip.requirements_met"} & set(names) == set()
    for name in ("pip._requirements_met", "pip.requirements_met", "aliases.parse"):
        returned = runtime.call(name, ["x"], job={"module_executors": ["direct_call"]})
        assert (returned.success, returned.value) == (False, f"'{name}' is not available.")
    assert callable(runtime.functions["pip._requirements_met"])
