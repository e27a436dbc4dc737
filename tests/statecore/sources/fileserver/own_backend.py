"""A file server backend as users write them for Salt: files of a directory, in capitals; ``NAME~`` in it is a link to NAME."""

import hashlib
import os

__virtualname__ = "mine"


def __virtual__():
    if "mine_root" not in __opts__:
        return False, "mine_root says no directory"
    return __virtualname__


def _path(env, path):
    return os.path.join(__opts__["mine_root"], env, path)


def _walk(env):
    root = _path(env, "")
    for here, dirs, files in os.walk(root):
        yield os.path.relpath(here, root), dirs, files


def _content(path):
    if path.endswith("broken.sls"):
        raise RuntimeError("cannot be read")
    with open(path) as file:
        return file.read().upper().encode()


def envs():
    return sorted(os.listdir(__opts__["mine_root"]))


def file_list(load):
    found = [os.path.normpath(os.path.join(here, name)) for here, _, files in _walk(load["saltenv"]) for name in files]
    return [name for name in found if not name.endswith("~")]


def dir_list(load):
    return [here for here, _, _ in _walk(load["saltenv"])]


def file_list_emptydirs(load):
    return [here for here, dirs, files in _walk(load["saltenv"]) if not dirs and not files]


def symlink_list(load):
    return {name[:-1]: name[:-1] for _, _, files in _walk(load["saltenv"]) for name in files if name.endswith("~")}


def find_file(path, saltenv="base", **kwargs):
    whole = _path(saltenv, path)
    if not os.path.isfile(whole):
        return {"path": "", "rel": ""}
    return {"path": whole, "rel": path, "stat": list(os.stat(whole))}


def serve_file(load, fnd):
    assert fnd["back"] == "mine"
    size = __opts__["file_buffer_size"]
    return {"data": _content(fnd["path"])[load["loc"] : load["loc"] + size], "dest": fnd["rel"]}


def file_hash(load, fnd):
    kind = __opts__["hash_type"]
    return {"hash_type": kind, "hsum": hashlib.new(kind, _content(fnd["path"])).hexdigest()}


def update():
    os.makedirs(__opts__["cachedir"], exist_ok=True)
    with open(os.path.join(__opts__["cachedir"], "mine-updated"), "a") as file:
        file.write("updated\n")


def lock(remote=None):
    return [f"locked {remote}"], []


def clear_lock(remote=None, lock_type="update"):
    return [f"unlocked {remote} {lock_type}"], ["not all"]


def clear_cache():
    raise OSError("no such cache")
