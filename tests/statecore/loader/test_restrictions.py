"""What options take out of a minion's modules, and for whom: compared with Salt's own salt-call on the same tree."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from statecore.loader.providers import disabled
from statecore.runtime.runtime import Runtime, local_runtime
from tests.conftest import Oracle

#: States that call functions by every way that an SLS has; ``grains`` and ``cmd`` are not whitelisted.
TREE = """
nop:
  test.nop: []
runs:
  module.run:
    - test.ping: []
barred:
  module.run:
    - grains.items: []
asks:
  test.nop:
    - unless:
      - fun: grains.get
        key: id
commands:
  test.nop:
    - unless: "true"
says:
  test.configurable_test_state:
    - changes: True
    - result: True
    - comment: __slot__:salt:grains.get(id)
modules:
  file.managed:
    - name: HERE/made
    - contents: x
unlisted:
  host.absent:
    - name: nowhere
    - ip: 192.0.2.1
"""

WHITELIST = {"whitelist_modules": ["test", "state", "config"]}

STATES = {"disable_modules": ["cmdmod"], "whitelist_state_modules": ["cmd", "module"]}


@pytest.fixture
def runtime(tmp_path: Path) -> Callable[..., Runtime]:
    (tmp_path / "tree.sls").write_text(TREE.replace("HERE", str(tmp_path)))
    (tmp_path / "templated.sls").write_text("x:\n  test.nop:\n    - name: {{ salt['grains.get']('id') }}\n")

    def make(**opts: Any) -> Runtime:
        grains = {} if "grains_blacklist" in opts or "disable_grains" in opts else {"grains": {"os": "Debian"}}
        return local_runtime(
            {"id": "web1", "file_roots": {"base": [str(tmp_path)]}, "cachedir": str(tmp_path / "cache"), **opts},
            **grains,
        )

    return make


def results(returned: Any) -> dict[str, Any]:
    return {key.split("_|-")[1]: entry["result"] for key, entry in returned.items()}


@pytest.mark.parametrize(
    ("opts", "fun", "said"),
    [
        (WHITELIST, "test.ping", True),
        (WHITELIST, "grains.get", "'grains.get' is not available."),
        (WHITELIST, "nosuch.fun", "'nosuch.fun' is not available."),
        ({"disable_modules": ["cmdmod"]}, "cmd.run", "'cmd.run' is not available."),
        ({"disable_modules": ["cmd"]}, "cmd.run", "'cmd.run' is not available."),
        ({"disable_modules": ["cmdmod"]}, "test.ping", True),
        ({"disable_modules": ["pkg"]}, "pkg.version", "'pkg.version' is not available."),
    ],
)
def test_jobs(runtime: Callable[..., Runtime], opts: dict[str, Any], fun: str, said: Any) -> None:
    returned = runtime(**opts).call(fun)
    assert returned.value == said or returned.value[fun] == said
    assert (returned.retcode == 0) is (said is True)


def test_the_minions_own_wishes_pass_the_whitelist(runtime: Callable[..., Runtime]) -> None:
    assert runtime(**WHITELIST).call("grains.get", ["os"], trusted=True).value == "Debian"
    assert runtime(disable_modules=["grains"]).call("grains.get", ["os"], trusted=True).retcode == 1


def test_who_writes_an_sls_has_what_jobs_have_and_modules_have_all(runtime: Callable[..., Runtime]) -> None:
    minion = runtime(**WHITELIST)
    run = minion.call("state.sls", ["tree"]).value
    wanted = {
        "nop": True,
        "runs": True,
        "barred": False,
        "asks": False,
        "commands": False,
        "says": True,
        "modules": True,
    }
    assert {name: result for name, result in results(run).items() if name in wanted} == wanted
    comments = {key.split("_|-")[1]: entry["comment"] for key, entry in run.items()}
    assert comments["barred"].startswith("Unavailable function: grains.items.")
    assert "'grains.get' is not available." in comments["asks"]
    assert comments["says"] == "__slot__:salt:grains.get(id)"
    (error,) = minion.call("state.sls", ["templated"]).value
    assert "'grains.get' is not available." in error
    assert minion.functions["grains.get"]("os") == "Debian"


def test_states_that_are_not_there(runtime: Callable[..., Runtime]) -> None:
    run = runtime(**STATES).call("state.sls", ["tree"]).value
    assert results(run) == dict.fromkeys(results(run), False) | {"runs": True, "barred": True}
    first = run["test_|-nop_|-nop_|-nop"]["comment"]
    assert first.startswith("State 'test.nop' was not found in SLS 'tree'\nReason: 'test.nop' is not available.")
    gone = runtime(disable_states=["test"]).call("state.sls", ["tree"]).value
    assert results(gone)["nop"] is False


def test_grains_that_are_left_out(runtime: Callable[..., Runtime]) -> None:
    all_of_them = set(runtime(grains_blacklist=[]).grains)
    left = set(
        runtime(
            grains_blacklist=["lsb_*", r"ip[46]_interfaces", "nodename", "id", "(", "mine"], grains={"mine": 1}
        ).grains
    )
    assert {"id", "mine", "os"} <= left
    assert all_of_them - left == {"nodename", "ip4_interfaces", "ip6_interfaces"} | {
        name for name in all_of_them if name.startswith("lsb_")
    }
    assert "gpus" not in runtime(disable_grains=["hardware"]).grains


def test_salts_names_of_files_mean_ours() -> None:
    assert disabled({"disable_modules": ["cmdmod", "x"], "disable_returners": ["redis"], "disable_beacons": []}) == {
        "modules": {"cmdmod", "cmd", "x"},
        "returners": {"redis"},
    }


@pytest.mark.oracle
def test_as_in_salt(runtime: Callable[..., Runtime], oracle: Oracle, tmp_path: Path) -> None:
    opts = {**WHITELIST, "disable_modules": ["hosts"], "whitelist_state_modules": ["test", "module", "file"]}
    config = tmp_path / "etc"
    config.mkdir()
    own = {"root_dir": str(tmp_path / "root"), "file_client": "local", "log_level": "quiet", **opts}
    (config / "minion").write_text(yaml.safe_dump({"id": "web1", "file_roots": {"base": [str(tmp_path)]}, **own}))
    words = ["--local", "-c", str(config), "--out", "json", "state.sls", "tree"]
    # It ends with 1, as states failed.
    done = subprocess.run(
        [oracle.program("salt-call"), *words], capture_output=True, text=True, timeout=90, check=False
    )
    ours = results(runtime(**opts).call("state.sls", ["tree"]).value)
    assert ours == results(json.loads(done.stdout)["local"])
    assert (ours["modules"], ours["unlisted"]) == (True, False)
