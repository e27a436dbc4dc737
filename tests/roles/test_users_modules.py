"""Users' modules in a whole fleet: runners on the master, executors and utility modules on minions, all from one tree."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.roles.lab import Lab

pytestmark = pytest.mark.roles

FILES = {
    "_runners/rounds.py": """\
import salt.client


def ask(tgt):
    __jid_event__.fire_event({'asked': tgt}, 'progress')
    return salt.client.LocalClient().cmd(tgt, 'test.arg', [1], kwarg={'two': 2})


def others():
    return __salt__['manage.up']()


def fails():
    __context__['retcode'] = 7
    return 'seven'


def breaks():
    return {}['nothing']
""",
    "_runners/clients.py": """\
import importlib

import salt.config
import salt.runner
import salt.wheel


def ask(tgt):
    local, found = importlib.import_module('salt.client').LocalClient(), {}
    found['gathered'] = local.gather_minions(tgt, 'glob')
    found['iter'] = sorted(name for one in local.cmd_iter(tgt, 'test.arg', [1], expr_form='glob') for name in one)
    found['no block'] = sorted(name for one in local.cmd_iter_no_block(tgt, 'test.ping') if one for name in one)
    found['cli'] = [one for one in local.cmd_cli('web1,gone', 'test.ping', timeout=3, tgt_type='list')]
    full = local.cmd_full_return(tgt, 'test.ping')
    found['full'] = {name: [one['ret'], one['retcode']] for name, one in full.items()}
    jid = local.cmd_async('web1', 'test.echo', ['later'])
    found['followed'] = [one['web1']['ret'] for one in local.get_cli_returns(jid, ['web1'])]
    found['cached'] = local.get_cache_returns(jid)['web1']['ret']
    runners, wheels = salt.runner.RunnerClient(__opts__), salt.wheel.WheelClient(__opts__)
    found['runner'] = runners.cmd_sync({'fun': 'test.arg', 'arg': [1], 'kwarg': {'a': 2}})
    started = runners.cmd_async({'fun': 'test.arg'})
    found['async'] = started['tag'] == 'salt/run/' + started['jid']
    found['wheel'] = sorted(wheels.cmd_sync({'fun': 'key.list', 'match': 'acc'})['data']['return']['minions'])
    found['id'] = salt.config.master_config('/etc/salt/master')['id'] == __opts__['id']
    return found
""",
    "_executors/telling.py": """\
def execute(opts, data, func, args, kwargs):
    return {'executor': 'telling', 'fun': data['fun'], 'by': opts['id'], 'options': data.get('executor_opts'),
            'value': func(*args, **kwargs)}
""",
    "_utils/shared.py": "def where():\n    return __grains__['id']\n",
    "_modules/sharing.py": """\
import shared


def where():
    return [__utils__['shared.where'](), shared.__name__.endswith('shared')]
""",
}


@pytest.fixture(scope="module", autouse=True)
def planted(lab: Lab) -> Iterator[None]:
    for name, text in FILES.items():
        path = lab.tree / "salt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    yield
    for name in FILES:
        (lab.tree / "salt" / name).unlink()
    lab.salt("*", "saltutil.sync_all")


def test_a_runner_of_the_tree(lab: Lab) -> None:
    assert "runners.rounds" in lab.runner("saltutil.sync_runners")
    # What it tells of its progress comes first.
    *_, said = lab.ok("salt-run", "--out", "json", "--out-indent", "-1", "rounds.ask", "web*").out.splitlines()
    answers = json.loads(said)
    assert set(answers) == {"web1", "web2"}
    assert answers["web1"]["args"] == [1]
    assert answers["web1"]["kwargs"]["two"] == 2
    assert lab.runner("rounds.others") == ["web1", "web2"]


def test_a_runner_with_all_clients_of_salt(lab: Lab) -> None:
    lab.runner("saltutil.sync_runners")
    both = ["web1", "web2"]
    found = lab.runner("clients.ask", "web*")
    told = {name: one["ret"] for row in found.pop("cli") for name, one in row.items()}
    assert told == {"web1": True}
    assert found == {
        "gathered": both,
        "iter": both,
        "no block": both,
        "full": {"web1": [True, 0], "web2": [True, 0]},
        "followed": ["later"],
        "cached": "later",
        "runner": {"args": [1], "kwargs": {"a": 2}},
        "async": True,
        "wheel": both,
        "id": True,
    }


def test_a_runner_that_fails(lab: Lab) -> None:
    lab.runner("saltutil.sync_runners")
    failed = lab.run("salt-run", "--out", "json", "rounds.fails")
    assert (failed.code, failed.data) == (7, "seven")
    broken = lab.run("salt-run", "rounds.breaks")
    assert broken.code == 1
    assert "Exception occurred in runner rounds.breaks: KeyError: 'nothing' (" in broken.out
    assert "/runners/rounds.py:19)" in broken.out


def test_an_executor_of_the_tree(lab: Lab) -> None:
    lab.salt("web1", "saltutil.sync_executors")
    words = ("--module-executors", "[telling]", "--executor-opts", "{a: 1}", "web1", "test.ping")
    assert lab.salt(*words)["web1"] == {
        "executor": "telling",
        "fun": "test.ping",
        "by": "web1",
        "options": {"a": 1},
        "value": True,
    }
    refused = lab.run("salt", "--out", "json", "--static", "--module-executors", "[nothing]", "web1", "test.ping")
    assert refused.data == {"web1": "ERROR executing 'test.ping': Executor 'nothing' is not available"}
    assert refused.code == 1


def test_utility_modules_of_the_tree(lab: Lab) -> None:
    lab.salt("web1", "saltutil.sync_all")
    assert lab.salt("web1", "sharing.where")["web1"] == ["web1", True]
