"""Run by the oracle's Python: what real Salt's file server says of trees.

Standard input: a JSON list of cases, each ``[opts, asks]``; an ask is a list: a verb and what it is about.

``["envs"]``, ``["sources"]``
    environments; by backend
``["files" | "dirs" | "empty" | "links", environment, prefix]``
    what there is
``["text", path, environment]``
    [backend, first chunk, digest, whether it may be run]; None where there is no such file

Where Salt fails, ``["error", why]``.

Standard output: a JSON list of lists of answers.
"""

import json
import sys
import tempfile
from collections.abc import Sequence

import salt.config
import salt.fileserver
import salt.utils.gitfs

LISTS = {"files": "file_list", "dirs": "dir_list", "empty": "file_list_emptydirs", "links": "symlink_list"}


def answer(server, verb, *args):
    if verb == "envs":
        return sorted(server.envs())
    if verb == "sources":
        return {name: sorted(envs) for name, envs in server.envs(sources=True).items()}
    if verb in LISTS:
        env, prefix = args
        return getattr(server, LISTS[verb])({"saltenv": env, "prefix": prefix})
    path, env = args
    found = server.find_file(path, env)
    if not found.get("path"):
        return None
    load = {"path": path, "saltenv": env, "loc": 0}
    data = server.serve_file(dict(load))["data"]
    digest = server.file_hash(dict(load))["hsum"]
    text = data.decode() if isinstance(data, bytes) else data
    return [found["back"], text, digest.decode() if isinstance(digest, bytes) else digest, found["stat"][0] & 0o100]


def guarded(server, *ask):
    try:
        return answer(server, *ask)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is Salt's answer
        return ["error", repr(error)]


def thawed(value):
    """Salt's own defaults are frozen, and not every part of it takes them so."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else value


def server_of(opts):
    cachedir = tempfile.mkdtemp(dir=opts.pop("scratch"))
    whole = {
        **{name: thawed(value) for name, value in salt.config.DEFAULT_MASTER_OPTS.items()},
        "__role": "master",
        "cachedir": opts.pop("cachedir", cachedir),
        "sock_dir": cachedir,
        "extension_modules": f"{cachedir}/extmods",
        "optimization_order": [0],
        "fileserver_list_cache_time": -1,
        **opts,
    }
    # One for a process, whatever its options.
    salt.utils.gitfs.GitFS.instance_map.clear()
    server = salt.fileserver.Fileserver(whole)
    server.update()
    return server


answers = []
for opts, asks in json.load(sys.stdin):
    server = server_of(opts)
    answers.append([guarded(server, *ask) for ask in asks])
json.dump(answers, sys.stdout)
