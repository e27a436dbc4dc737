"""Functions of pkg_resource that change what they are given, or ask the package manager; the others are cases of ``recorded``."""

from __future__ import annotations

import pytest

from statecore.model.errors import CallFailed


def test_changes_in_place(plain):
    call = plain.call
    packages: dict[str, object] = {}
    for version in ("2", "1", "2"):
        call("pkg_resource.add_pkg", packages, "bind", version)
    assert packages == {"bind": ["2", "1", "2"]}
    call("pkg_resource.sort_pkglist", packages)
    assert packages == {"bind": ["1", "2"]}
    call("pkg_resource.stringify", packages)
    assert packages == {"bind": "1,2"}


@pytest.mark.parametrize(
    ("names", "options", "expected"),
    [
        (["curl"], {}, "7.88.1-10"),
        (["curl"], {"versions_as_list": "True"}, ["7.88.1-10"]),
        (["none"], {}, ""),
        (["curl", "none"], {}, {"curl": "7.88.1-10", "none": ""}),
        (["cu*"], {}, {"curl": "7.88.1-10"}),
        (["x*"], {}, {}),
        ([], {}, {}),
    ],
)
def test_version(plain, debian, names, options, expected):
    assert plain.call("pkg_resource.version", *names, **options) == expected


def test_wrong_operator(plain, debian):
    with pytest.raises(CallFailed, match="no operator"):
        plain.call("pkg_resource.version_compare", "1", "~", "2")
