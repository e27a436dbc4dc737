"""The grains of this machine beside those that real Salt gathers here: what differs, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.runtime.runtime import gather_grains

#: Grain that only one of both has -> why.
OURS_ALONE = {
    "host_root": "where the managed host is",
    "userland": "whether anything can run there",
}
SALTS_ALONE = {
    "ca_truststore": "of its own HTTP library",
    "fibre_channel_host": "needs a switch in the configuration, says False without",
    "package": "how Salt was packaged",
    "zmqversion": "statecore has no sockets",
}

#: Grain whose value differs -> why.
OTHERWISE = {
    "cwd": "of another process",
    "pid": "of another process",
    "pythonexecutable": "another Python",
    "pythonpath": "another Python",
    "pythonversion": "another Python",
    "saltpath": "another program",
    "systemd": "features are told by a program alone",
    "path": "of another process",
    "systempath": "of another process",
    "shell": "of another process",
    "fqdns": "Salt asks name servers",
    "fqdn_ip4": "Salt asks name servers",
    "fqdn_ip6": "Salt asks name servers",
    "virtual_subtype": "Salt asks systemd-detect-virt, where there is one",
    "gpus": "Salt needs lspci for them",
    "num_gpus": "Salt needs lspci for them",
}

#: Grains that Salt has only where a program is there.
BY_PROGRAM = frozenset({"gpus", "num_gpus", "ip_gw", "ip4_gw", "ip6_gw", "virtual_subtype"})


def _unordered(value: Any) -> Any:
    """Sort the addresses of each interface: the kernel's files and ``ip`` list them in different orders."""
    if isinstance(value, dict):
        return {key: sorted(each) if isinstance(each, list) else each for key, each in value.items()}
    return value


@pytest.mark.oracle
def test_the_grains_of_this_machine(oracle: Any, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    options = {"id": "web1", "file_client": "local", "root_dir": str(tmp_path), "enable_fqdns_grains": False}
    (tmp_path / "etc/minion").write_text(json.dumps(options))
    told = oracle.run("salt-call", "--local", "-c", str(tmp_path / "etc"), "grains.items", "--out", "json")
    theirs = json.loads(told[told.index("{") :])["local"]
    ours = json.loads(json.dumps(dict(gather_grains(Host("/"), {"id": "web1", "master": "salt"}))))
    assert ours.keys() - theirs.keys() <= OURS_ALONE.keys() | BY_PROGRAM
    assert theirs.keys() - ours.keys() <= SALTS_ALONE.keys() | BY_PROGRAM
    both = ours.keys() & theirs.keys()
    differing = {
        name: (ours[name], theirs[name]) for name in both if _unordered(ours[name]) != _unordered(theirs[name])
    }
    # Memory and addresses may change between the two looks.
    assert {name: pair for name, pair in differing.items() if name not in OTHERWISE} == {}
    assert ours["systemd"]["version"] == theirs["systemd"]["version"] if "systemd" in theirs else True
