"""The pkg states: each told in test mode, applied, and looked at again."""

from __future__ import annotations

import pytest

from statecore.engine.call import finish
from statecore.model.errors import NotAvailable

NEW = {"nginx-light": {"new": "1.22.1-9", "old": ""}}
ALL = "All specified packages are already installed"

#: fun, arguments, (result, changes, comment) in test mode, then applied, then applied again.
CASES = {
    "one package": (
        "installed",
        {"name": "nginx-light"},
        (None, NEW, "The following packages would be installed/updated: nginx-light"),
        (True, NEW, "The following packages were installed/updated: nginx-light"),
        (True, {}, ALL),
    ),
    "packages there": (
        "installed",
        {"name": "x", "pkgs": ["curl", {"base-files": "12.4"}]},
        *[(True, {}, ALL + " and are at the desired version")] * 3,
    ),
    "no packages": ("installed", {"name": "x", "pkgs": []}, *[(True, {}, "No packages to install provided")] * 3),
    "many, some there": (
        "installed",
        {"name": "x", "pkgs": ["curl", {"git": ">=1:2.0"}, "nginx-light"]},
        (
            None,
            {"git": {"new": "installed", "old": ""}, **NEW},
            "The following packages would be installed/updated: git, nginx-light",
        ),
        (
            True,
            {"git": {"new": "1:2.39.2-1", "old": ""}, **NEW},
            "2 targeted packages were installed/updated.\nThe following packages were already installed: curl",
        ),
        (True, {}, ALL + " and are at the desired version"),
    ),
    "a pin": (
        "installed",
        {"name": "git", "version": "1:2.30.0-1"},
        (
            None,
            {"git": {"new": "installed", "old": ""}},
            "The following packages would be installed/updated: git",
        ),
        (
            True,
            {"git": {"new": "1:2.30.0-1", "old": ""}},
            "The following packages were installed/updated: git=1:2.30.0-1",
        ),
        (True, {}, ALL + " and are at the desired version"),
    ),
    "a pin by glob, another epoch": (
        "installed",
        {"name": "curl", "version": "7.88*"},
        *[(True, {}, ALL + " and are at the desired version")] * 3,
    ),
    "newer than pinned": (
        "installed",
        {"name": "curl", "version": "7.1", "allow_updates": True},
        *[(True, {}, ALL + " and are at the desired version")] * 3,
    ),
    "latest as version": (
        "installed",
        {"name": "git", "version": "latest"},
        (
            None,
            {"git": {"new": "installed", "old": ""}},
            "The following packages would be installed/updated: git",
        ),
        (
            True,
            {"git": {"new": "1:2.39.2-1", "old": ""}},
            "The following packages were installed/updated: git=1:2.39.2-1",
        ),
        (True, {}, ALL + " and are at the desired version"),
    ),
    "again": (
        "installed",
        {"name": "curl", "reinstall": True},
        (None, {"curl": {"new": "installed", "old": ""}}, "The following packages would be reinstalled: curl"),
        *[(True, {"curl": {"new": "7.88.1-10", "old": "7.88.1-10"}}, "Package curl was reinstalled.")] * 2,
    ),
    "unknown": (
        "installed",
        {"name": "no"},
        (None, {"no": {"new": "installed", "old": ""}}, "The following packages would be installed/updated: no"),
        *[
            (
                False,
                {},
                "Problem encountered installing package(s). Additional info follows:\n\n"
                "errors:\n    - E: Unable to locate package no",
            )
        ]
        * 2,
    ),
    "held, there": (
        "installed",
        {"name": "curl", "hold": True},
        (None, {}, f"{ALL}.\nPackage curl is set to be held."),
        (True, {"curl": {"old": "install", "new": "hold"}}, f"{ALL}.\nPackage curl is now being held."),
        (True, {}, f"{ALL}.\nPackage curl is already set to be held."),
    ),
    "verified": ("installed", {"name": "curl", "pkg_verify": True}, *[(False, {}, "pkg.verify not implemented")] * 3),
    "two sources of packages": (
        "installed",
        {"name": "x", "pkgs": ["a"], "sources": [{"a": "/a"}]},
        *[(False, {}, 'Only one of "pkgs" and "sources" is permitted.')] * 3,
    ),
    "a file": (
        "installed",
        {"name": "x", "sources": [{"local": "salt://local"}]},
        (
            None,
            {"local": {"new": "installed", "old": ""}},
            "The following packages would be installed/updated: local",
        ),
        (True, {"local": {"new": "1.0", "old": ""}}, "The following packages were installed/updated: local"),
        (True, {}, ALL),
    ),
    "newest": (
        "latest",
        {"name": "nginx-light"},
        (None, NEW, "The following packages would be installed/upgraded: nginx-light"),
        (True, NEW, "The following packages were successfully installed/upgraded: nginx-light"),
        (True, {}, "Package nginx-light is already up-to-date"),
    ),
    "newest of some": (
        "latest",
        {"name": "x", "pkgs": ["curl", "nginx-light"]},
        (
            None,
            NEW,
            "The following packages would be installed/upgraded: nginx-light\n"
            "The following packages are already up-to-date: curl (7.88.1-10)",
        ),
        (
            True,
            NEW,
            "The following packages were successfully installed/upgraded: nginx-light "
            "The following packages were already up-to-date: curl",
        ),
        (True, {}, "All packages are up-to-date (curl, nginx-light)."),
    ),
    "newest of nothing": ("latest", {"name": "no"}, *[(False, {}, "No information found for 'no'.")] * 3),
    "removed": (
        "removed",
        {"name": "curl"},
        (None, {"curl": {"new": "removed", "old": ""}}, "The following packages will be removed: curl."),
        (True, {"curl": {"new": "", "old": "7.88.1-10"}}, "All targeted packages were removed."),
        (True, {}, "All specified packages are already absent"),
    ),
    "removed in another version": (
        "removed",
        {"name": "curl", "version": "1.0"},
        *[(True, {}, "All specified packages (matching specified versions) are already absent")] * 3,
    ),
    "purged": (
        "purged",
        {"name": "x", "pkgs": ["curl", "oldthing", "no"]},
        (
            None,
            {"curl": {"new": "purged", "old": ""}, "oldthing": {"new": "purged", "old": ""}},
            "The following packages will be purged: curl, oldthing.",
        ),
        (
            True,
            {
                "installed": {"curl": {"new": "", "old": "7.88.1-10"}},
                "removed": {"oldthing": {"new": "", "old": "1.0"}},
            },
            "The following packages were not installed: no The following packages were purged: curl, oldthing.",
        ),
        (True, {}, "None of the targeted packages are installed or partially installed"),
    ),
    "up to date": ("uptodate", {"name": "x"}, *[(True, {}, "System is already up-to-date")] * 3),
    "held": (
        "held",
        {"name": "curl"},
        (None, {}, "The following package would be held: curl"),
        (
            True,
            {
                "curl": {
                    "name": "curl",
                    "changes": {"old": "install", "new": "hold"},
                    "result": True,
                    "comment": "Package curl is now being held.",
                }
            },
            "Package curl is now being held",
        ),
        (True, {}, "No changes made"),
    ),
    "not held": ("unheld", {"name": "x", "all": True}, *[(True, {}, "No changes made")] * 3),
    "watched in vain": (
        "mod_watch",
        {"name": "x", "sfun": "held"},
        *[(False, {}, "pkg.held does not work with the watch requisite")] * 3,
    ),
    "watched": ("mod_watch", {"name": "curl", "sfun": "installed"}, *[(True, {}, ALL)] * 3),
}


@pytest.mark.parametrize("told_as", CASES)
def test_states(plain, debian, told_as):
    plain.write("local", "a package")
    fun, arguments, *expected = CASES[told_as]
    for test, told in zip((True, False, False), expected, strict=True):
        before = (dict(debian.installed), dict(debian.left), set(debian.held))
        entry = plain.state(f"pkg.{fun}", test=test, **arguments)
        assert (entry["result"], entry["changes"], entry["comment"]) == told
        if test:
            assert before == (debian.installed, debian.left, debian.held)


def test_the_system_brought_up_to_date(plain, debian):
    debian.installed["curl"] = "7.80"
    entry = plain.state("pkg.uptodate", name="x", test=True)
    assert entry["comment"] == "System update will be performed"
    assert entry["changes"] == {"curl": {"new": "7.88.1-10", "old": "7.80"}}
    entry = plain.state("pkg.uptodate", name="x")
    assert entry["comment"] == "Upgrade ran successfully"
    assert entry["changes"] == {"curl": {"new": "7.88.1-10", "old": "7.80"}}


def test_unheld(plain, debian):
    debian.held |= {"curl", "base-files"}
    entry = plain.state("pkg.held", name="curl", replace=True)
    assert entry["comment"] == "Package base-files is no longer being held."
    assert debian.held == {"curl"}
    assert plain.state("pkg.unheld", name="curl", test=True)["comment"] == "The following package would be unheld: curl"
    assert plain.state("pkg.unheld", name="curl")["result"] is True
    assert debian.held == set()


def test_the_lists_are_fetched_once_in_a_run(plain, debian):
    ctx = plain.context()
    served, function = plain.loader.function("states", "pkg.mod_init", ctx)
    init = served.bound(function, ctx)
    assert init({"fun": "removed"}) is False
    assert init({"fun": "installed"}) is True
    for name in ("curl", "nginx-light", "git"):
        finish(ctx, "pkg.installed", ctx.states["pkg.installed"](name=name), {"name": name})
    fetched = [call for call in debian.calls if call.endswith("update")]
    assert len(fetched) == 1
    init({"fun": "installed"})
    ctx.states["pkg.installed"](name="nothing", refresh=False)
    assert [call for call in debian.calls if call.endswith("update")] == fetched


def test_like_states_gathered_into_one(plain, debian):
    ctx = plain.context()
    served, function = plain.loader.function("states", "pkg.mod_aggregate", ctx)
    low = {"state": "pkg", "fun": "installed", "name": "git"}
    others = [
        low,
        {"state": "pkg", "fun": "installed", "name": "x", "pkgs": ["curl", "git"]},
        {"state": "pkg", "fun": "installed", "name": "nginx-light", "version": "1.22.0-1"},
        {"state": "pkg", "fun": "installed", "name": "kept", "hold": True},
        {"state": "pkg", "fun": "removed", "name": "gone"},
    ]
    low["__agg__"] = True
    gathered = served.bound(function, ctx)(low, others, {})
    assert gathered["pkgs"] == ["git", "curl", {"nginx-light": "1.22.0-1"}]
    assert [bool(each.get("__agg__")) for each in others] == [True, True, True, False, False]


def test_hosts_without_packages(plain, debian):
    debian.absent.add("apt-get")
    with pytest.raises(NotAvailable, match=r"pkg module could not be loaded.*the host has no apt-get"):
        plain.state("pkg.installed", name="curl")


@pytest.mark.parametrize(
    ("fun", "arguments", "comment"),
    [
        ("installed", {"pkg_verify": "yes"}, "pkg_verify is True, False, or a list of ignore_types and verify_options"),
        (
            "installed",
            {"pkg_verify": [{"ignore": ["config"]}]},
            "pkg_verify: ignore must be a list named ignore_types or",
        ),
        ("installed", {"pkg_verify": [{"ignore_types": "config"}]}, "pkg_verify: ignore_types must be a list"),
        ("installed", {"pkgs": 5}, "Invalidly formatted 'pkgs' parameter"),
        ("installed", {"pkgs": [{"a": "1"}, {"a": "2"}]}, "package a is listed twice, with different versions"),
        ("installed", {"sources": ["a.deb"]}, "Invalidly formatted 'sources' parameter"),
        ("installed", {"resolve_capabilities": True}, "not supported: resolve_capabilities"),
        ("latest", {"resolve_capabilities": True}, "not supported: resolve_capabilities"),
        ("uptodate", {"resolve_capabilities": True}, "not supported: resolve_capabilities"),
        ("uptodate", {"refresh": "maybe"}, "refresh must be either True or False"),
        ("group_installed", {}, "pkg.group_install not available for this platform"),
        ("patch_installed", {}, "The pkg.patch_installed state is not available on this platform"),
    ],
)
def test_arguments_that_cannot_be_meant(plain, debian, fun, arguments, comment):
    for test in (True, False):
        entry = plain.state(f"pkg.{fun}", name="x", test=test, **arguments)
        assert (entry["result"], entry["changes"]) == (False, {})
        assert entry["comment"].startswith(comment)
    assert not [call for call in debian.calls if "install" in call]
