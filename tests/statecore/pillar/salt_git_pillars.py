"""Run by the oracle's Python: what real Salt compiles from Git repositories.

Standard input: a JSON list of cases, each ``[opts, grains, saltenv, pillarenv]``; ``opts`` name a scratch directory.
Standard output: a JSON list of pillars; ``["error", why]`` where Salt fails.
"""

import json
import sys
import tempfile
from collections.abc import Sequence

import salt.config
import salt.pillar
import salt.pillar.git_pillar
import salt.utils.gitfs


def thawed(value):
    """Salt's own defaults are frozen, and not every part of it takes them so."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else value


def compiled(opts, grains, saltenv, pillarenv):
    scratch = tempfile.mkdtemp(dir=opts.pop("scratch"))
    whole = {
        **{name: thawed(value) for name, value in salt.config.DEFAULT_MASTER_OPTS.items()},
        "__role": "master",
        "cachedir": scratch,
        "sock_dir": scratch,
        "extension_modules": f"{scratch}/extmods",
        "optimization_order": [0],
        "git_pillar_provider": "gitpython",
        "file_client": "local",
        "pillarenv": pillarenv,
        "saltenv": saltenv,
        **opts,
    }
    for entry in whole["ext_pillar"]:
        remotes = salt.utils.gitfs.GitPillar(
            whole,
            entry["git"],
            per_remote_overrides=salt.pillar.git_pillar.PER_REMOTE_OVERRIDES,
            per_remote_only=salt.pillar.git_pillar.PER_REMOTE_ONLY,
            global_only=salt.pillar.git_pillar.GLOBAL_ONLY,
        )
        remotes.fetch_remotes()
    return salt.pillar.Pillar(whole, grains, "web1", saltenv, pillarenv=pillarenv).compile_pillar()


def guarded(*case):
    try:
        return compiled(*case)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is Salt's answer
        return ["error", repr(error)]


json.dump([guarded(*case) for case in json.load(sys.stdin)], sys.stdout, default=str)
