"""The configuration of the manifests as roles read it, over mounts as the kubelet makes them."""

from __future__ import annotations

import shutil
from pathlib import Path

from saltern.kit.config.master import load_master
from saltern.kit.config.minion_options import load_minion
from saltern.kit.trees.served_files import file_server
from tests.k8s.rendered import K8S


def test_a_tree_from_a_configmap_is_served_once(tmp_path: Path) -> None:
    tree = tmp_path / "srv"
    (tree / "..2026_11_21" / "web").mkdir(parents=True)
    for name in ("top.sls", "web/init.sls"):
        (tree / "..2026_11_21" / name).write_text("{}\n")
    (tree / "..data").symlink_to("..2026_11_21")
    for name in ("top.sls", "web"):
        (tree / name).symlink_to(f"..data/{name}")
    (tmp_path / "master.d").mkdir()
    shutil.copy(K8S / "base" / "config" / "10-base.conf", tmp_path / "master.d")
    (tmp_path / "master.d" / "90-test.conf").write_text(f"file_roots: {{base: [{tree}]}}\ncachedir: {tmp_path}/cache\n")
    files = file_server(load_master(str(tmp_path), env={}))
    assert files.paths() == ["top.sls", "web/init.sls"]
    assert files.dirs() == ["web"]
    assert files.fetch("web/init.sls") is not None


def test_a_minion_is_its_node(tmp_path: Path) -> None:
    shutil.copy(K8S / "minions" / "config" / "minion", tmp_path)
    options = load_minion(str(tmp_path), env={"SALTERN_ID": "node-7"})
    assert (options.id, options.host_root, options.host_pid) == ("node-7", "/host", True)
    # All that it writes is on the node.
    written = (options.pki_dir, options.cachedir, options.grains_file, options.schedule_file, options.beacons_file)
    assert all(path.startswith("/var/lib/saltern/") for path in written)
