"""The pkg module and states on a mounted host whose packages are RPM's: real rpm, real dnf, a repository of files."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecore.system.packages.package_versions import rpm

pytestmark = [pytest.mark.userland, pytest.mark.timeout(1500)]


def test_a_package_from_installation_to_removal(rpm_tree):
    assert rpm_tree.call("pkg.list_pkgs") == {}
    assert rpm_tree.call("pkg.latest_version", "mill") == "1.1-1"
    assert rpm_tree.call("pkg.list_repo_pkgs", "mill") == {"mill": ["1.1-1", "1.1~rc1-1", "1.0-1"]}
    old = rpm_tree.state("pkg.installed", name="mill", version="1.0-1")
    assert (old["result"], old["changes"]) == (True, {"mill": {"old": "", "new": "1.0-1"}})
    assert rpm_tree.call("pkg.list_upgrades", refresh=False) == {"mill": "1.1-1"}
    would = rpm_tree.state("pkg.latest", name="mill", test=True)
    assert (would["result"], would["changes"]) == (None, {"mill": {"old": "1.0-1", "new": "1.1-1"}})
    done = rpm_tree.state("pkg.latest", name="mill")
    assert (done["result"], done["changes"]) == (True, would["changes"])
    assert rpm_tree.state("pkg.latest", name="mill")["comment"] == "Package mill is already up-to-date"
    back = rpm_tree.state("pkg.installed", name="mill", version="<1.1~rc1")
    assert (back["result"], back["changes"]) == (True, {"mill": {"old": "1.1-1", "new": "1.0-1"}})
    assert rpm_tree.state("pkg.installed", name="mill", version="1.0*")["changes"] == {}
    assert rpm_tree.state("pkg.uptodate", name="all")["changes"] == {"mill": {"old": "1.0-1", "new": "1.1-1"}}
    gone = rpm_tree.state("pkg.removed", name="mill")
    assert (gone["result"], gone["changes"]) == (True, {"mill": {"old": "1.1-1", "new": ""}})
    assert rpm_tree.state("pkg.purged", name="mill")["changes"] == {}


def test_dependencies_epochs_and_what_is_not_there(rpm_tree):
    done = rpm_tree.state("pkg.installed", name="wheel", version="1:0.9-2")
    assert done["changes"] == {"mill": {"old": "", "new": "1.1-1"}, "wheel": {"old": "", "new": "1:0.9-2"}}
    assert rpm_tree.state("pkg.installed", name="wheel", version="0.9-2")["changes"] == {}
    assert rpm_tree.state("pkg.installed", name="wheel", version=">=0:0.9")["changes"] == {}
    failed = rpm_tree.state("pkg.installed", name="x", pkgs=["gear", "nosuch"])
    assert failed["result"] is False
    assert "nosuch" in failed["comment"]
    ranged = rpm_tree.state("pkg.installed", name="gear", version=">4")
    assert "No version matching 'gear>4' could be found (available: 3.0-1)" in ranged["comment"]
    assert rpm_tree.call("pkg.remove", "mill") == {
        "mill": {"old": "1.1-1", "new": ""},
        "wheel": {"old": "1:0.9-2", "new": ""},
    }


def test_files_of_packages(rpm_tree):
    rpm_tree.call("pkg.install", "mill")
    assert rpm_tree.call("pkg.owner", "/usr/bin/mill") == "mill"
    assert rpm_tree.call("pkg.owner", "/usr/bin/mill", "/bin/sh") == {"/usr/bin/mill": "mill", "/bin/sh": ""}
    assert rpm_tree.call("pkg.file_list", "mill") == {"errors": [], "files": ["/etc/mill.conf", "/usr/bin/mill"]}
    assert rpm_tree.call("pkg.file_dict", "mill")["packages"] == {"mill": ["/etc/mill.conf", "/usr/bin/mill"]}
    assert rpm_tree.call("pkg.verify", "mill") == {}
    (rpm_tree.root / "usr/bin/mill").write_text("changed")
    (rpm_tree.root / "etc/mill.conf").unlink()
    found = rpm_tree.call("pkg.verify", "mill")
    assert found["/etc/mill.conf"] == {"missing": True, "type": "config"}
    assert {"size", "md5sum"} <= set(found["/usr/bin/mill"]["mismatch"])
    assert list(rpm_tree.call("pkg.verify", "mill", ignore_types=["config"])) == ["/usr/bin/mill"]


def test_package_files(rpm_tree):
    built = next((rpm_tree.root / "srv/repo/noarch").glob("gear-*.rpm"))
    (rpm_tree.tree / "gear.rpm").write_bytes(built.read_bytes())
    done = rpm_tree.state("pkg.installed", name="x", sources=[{"gear": "salt://gear.rpm"}])
    assert (done["result"], done["changes"]) == (True, {"gear": {"old": "", "new": "3.0-1"}})
    again = rpm_tree.state("pkg.installed", name="x", sources=[{"gear": "salt://gear.rpm"}], reinstall=True)
    assert (again["result"], again["changes"]) == (True, {"gear": {"old": "3.0-1", "new": "3.0-1"}})


def test_holding(rpm_tree):
    rpm_tree.call("pkg.install", "mill", version="1.0-1")
    held = rpm_tree.state("pkg.held", name="mill")
    assert (held["result"], held["comment"]) == (True, "Package mill is now being held")
    assert rpm_tree.call("pkg.list_holds") == ["mill-0:1.0-1.*"]
    assert rpm_tree.call("pkg.list_holds", full=False) == ["mill"]
    assert rpm_tree.state("pkg.held", name="mill")["comment"] == "No changes made"
    kept = rpm_tree.state("pkg.installed", name="mill", version="1.1-1")
    assert kept["result"] is False
    assert "because they are being held: mill" in kept["comment"]
    let = rpm_tree.state("pkg.installed", name="mill", version="1.1-1", update_holds=True)
    assert (let["result"], let["changes"]) == (True, {"mill": {"old": "1.0-1", "new": "1.1-1"}})
    assert rpm_tree.call("pkg.list_holds") == ["mill-0:1.1-1.*"]
    assert rpm_tree.state("pkg.unheld", name="mill")["result"] is True
    assert rpm_tree.call("pkg.list_holds") == []


def test_groups(rpm_tree):
    assert rpm_tree.call("pkg.group_info", "Works")["mandatory"] == ["mill"]
    would = rpm_tree.state("pkg.group_installed", name="Works", test=True)
    assert (would["result"], would["comment"]) == (None, "Group 'Works' will be installed")
    done = rpm_tree.state("pkg.group_installed", name="Works", include=["gear"])
    assert set(done["changes"]) == {"mill", "wheel", "gear"}
    assert rpm_tree.state("pkg.group_installed", name="Works")["comment"] == "Group 'Works' is already installed"


@pytest.fixture
def served(rpm_tree):
    """The repository behind http, as dnf keeps no copies of files that it can reach."""
    handler = functools.partial(_Quiet, directory=rpm_tree.root / "srv/repo")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Nobody reads it."""


def test_fetched_and_not_installed(rpm_tree, served):
    shutil.rmtree(rpm_tree.root / "var/cache/dnf", ignore_errors=True)
    source = {"setopt": f"local.baseurl={served}"}
    would = rpm_tree.state("pkg.downloaded", name="gear", test=True, **source)
    assert (would["result"], would["comment"]) == (None, "The following packages would be downloaded: gear")
    done = rpm_tree.state("pkg.downloaded", name="gear", **source)
    assert (done["result"], list(done["changes"])) == (True, ["gear"])
    assert list(rpm_tree.call("pkg.list_downloaded")["gear"]) == ["3.0-1"]
    assert rpm_tree.call("pkg.list_pkgs") == {}
    again = rpm_tree.state("pkg.downloaded", name="gear", **source)
    assert (again["changes"], again["comment"]) == ({}, "All specified packages are already downloaded")
    other = rpm_tree.state("pkg.downloaded", name="gear", version=">9", **source)
    assert (other["result"], other["changes"]) == (False, {})


def test_packages_that_something_is_provided_by(rpm_tree):
    done = rpm_tree.state("pkg.installed", name="/usr/bin/gear", resolve_capabilities=True)
    assert done["changes"] == {"gear": {"old": "", "new": "3.0-1"}}
    assert rpm_tree.state("pkg.installed", name="/usr/bin/gear", resolve_capabilities=True)["changes"] == {}


def test_altered_packages_are_installed_again(rpm_tree):
    rpm_tree.call("pkg.install", "mill")
    (rpm_tree.root / "usr/bin/mill").write_text("changed")
    would = rpm_tree.state("pkg.installed", name="mill", pkg_verify=True, test=True)
    assert "because the following files have been altered:\n/usr/bin/mill:" in would["comment"]
    done = rpm_tree.state("pkg.installed", name="mill", pkg_verify=True)
    assert (done["result"], done["changes"]) == (True, {"mill": {"old": "1.1-1", "new": "1.1-1"}})
    assert (rpm_tree.root / "usr/bin/mill").read_text() == "1.1\n"
    assert rpm_tree.state("pkg.installed", name="mill", pkg_verify=True)["changes"] == {}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(*[st.from_regex(r"[0-9ab.~^_+]{1,8}", fullmatch=True)] * 2), min_size=20, max_size=60))
def test_order_of_versions_is_rpms(rpm_tree, pairs):
    script = "".join(f'print(rpm.vercmp("{left}", "{right}"))\n' for left, right in pairs)
    (rpm_tree.root / "tmp/order.lua").write_text(script)
    answers = [int(line) for line in rpm_tree.run("rpmlua", "/tmp/order.lua").split()]
    assert [rpm.compare_part(left, right) for left, right in pairs] == answers
