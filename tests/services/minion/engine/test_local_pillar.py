"""One minion configuration, read by both: ``salt-call --local`` of real Salt and ours give the same pillar and top."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from saltern.minion.call import call

pytestmark = pytest.mark.oracle

FILES = {
    "pillar/base/top.sls": "base:\n  '*': [a]\n  'G@kernel:Linux': [b]\n",
    "pillar/base/a.sls": "include:\n  - lib.c: {key: 'under:here', defaults: {given: 1}}\nkey: a\nlist: [1]\n",
    "pillar/base/b.sls": "#!py\ndef run():\n    return {'list': [2], 'id': __opts__['id']}\n",
    "pillar/base/lib/c.sls": "given: {{ given }}\n",
    "pillar/dev/top.sls": "dev:\n  '*': [d]\n",
    "pillar/dev/d.sls": "key: dev\nlist: [3, 1]\n",
    "states/top.sls": "base:\n  '*': [one]\n",
    "plugins/mine.py": "def ext_pillar(minion_id, pillar, **kwargs):\n    return {'mine': [minion_id, sorted(pillar), kwargs]}\n",
    "tops/mytops.py": "def top(**kwargs):\n    return {'base': [kwargs['opts']['id'] + '-role', 'one']}\n",
    "stack/stack.cfg": "*.yml\n",
    "stack/one.yml": "list: [{{ pillar.list | length }}]\nstacked: {{ minion_id }}\n",
    "enc": '#!/bin/sh\necho "classes: [enc-$1]"\n',
}


def test_the_same_configuration_gives_the_same(oracle: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "enc").chmod(0o755)
    options = {
        "id": "web1",
        "file_client": "local",
        "cachedir": f"{tmp_path}/cache",
        "pki_dir": f"{tmp_path}/pki",
        "file_roots": {"base": [f"{tmp_path}/states"]},
        "pillar_roots": {"base": [f"{tmp_path}/pillar/base"], "dev": [f"{tmp_path}/pillar/dev"]},
        "pillar_merge_lists": True,
        "pillar_dirs": [f"{tmp_path}/plugins"],
        "top_dirs": [f"{tmp_path}/tops"],
        "ext_pillar": [
            {"cmd_yaml": "echo 'id_by_command: %s'"},
            {"mine": {"x": 1}},
            {"stack": f"{tmp_path}/stack/stack.cfg"},
        ],
        "master_tops": {"ext_nodes": f"{tmp_path}/enc", "mytops": True},
    }
    (tmp_path / "minion").write_text(yaml.safe_dump(options))
    salts = yaml.safe_dump({"log_file": f"{tmp_path}/log", "sock_dir": f"{tmp_path}/sock", "root_dir": str(tmp_path)})
    (tmp_path / "salt").mkdir()
    (tmp_path / "salt/minion").write_text((tmp_path / "minion").read_text() + salts)
    # Not pillar.items: without a master Salt compiles that over the pillar in memory, and plugins see it.
    for words in (["pillar.raw"], ["state.show_top"]):
        told = oracle.run("salt-call", "-c", str(tmp_path / "salt"), "--out=json", "-l", "quiet", *words)
        assert call.run(["-c", str(tmp_path), "--out=json", *words]) == 0
        assert json.loads(capsys.readouterr().out) == json.loads(told)
