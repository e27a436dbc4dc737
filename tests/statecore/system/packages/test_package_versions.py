"""Comparison of package versions for each package manager, and version conditions."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statecore.system.packages import package_versions
from statecore.system.packages.package_versions import apk, deb, rpm

#: Left, right, order. RPM's as ``rpm.vercmp`` and rpm-version(7) have them.
RPM = [
    ("1.0-1", "1.0-1", 0),
    ("1.0~rc1-1", "1.0-1", -1),
    ("1.0~rc1", "1.0~rc2", -1),
    ("1.0^git1", "1.0", 1),
    ("1.0^git1", "1.0.1", -1),
    ("1.0^git1~pre", "1.0^git1", -1),
    ("1.0~rc1^git1", "1.0~rc1", 1),
    ("1.10", "1.9", 1),
    ("1.0a", "1.0", 1),
    ("1.0", "1.0.a", -1),
    ("1.a", "1.1", -1),
    ("1.01", "1.1", 0),
    ("1_0", "1.0", 0),
    ("1.0", "1.0.", 0),
    ("a", "b", -1),
    ("B", "a", -1),
    ("10" * 3000, "10" * 3000 + "0", -1),
    ("1:0.1-1", "2.0-1", 1),
    ("0:1.0-1", "1.0-1", 0),
    ("1.0-1", "1.0-2", -1),
    ("1.0-1.el9", "1.0-1.el9_2", -1),
    ("1.0", "1.0-7", 0),
    ("x:1", "x:1", 0),
]

#: As apk-tools compares them.
APK = [
    ("2.34", "0.1.0_alpha", 1),
    ("1.0.4-r3", "1.0.4-r4", -1),
    ("1.0.4-r4", "1.6", -1),
    ("1.1", "1.1_alpha1", 1),
    ("1.3_alpha", "1.3_alpha2", -1),
    ("1.3_alpha8", "0.6.0", 1),
    ("0.1.0_alpha_pre2", "0.1.0_alpha", -1),
    ("0.8_beta4", "4.8-r1", -1),
    ("2.3.0b-r1", "2.3.0b-r2", -1),
    ("3.1_p16", "3.1_p17", -1),
    ("1.0_p10-r0", "1.0_p9-r0", 1),
    ("1.8.5", "1.8.5_p2", -1),
    ("1.06-r6", "006", -1),
    ("0.12.3", "0.12", 1),
    ("2.01.01_alpha10", "0.94", 1),
    ("1.02.07", "1.02.10-r1", -1),
    ("1.05-r18", "1.05-r19", -1),
    ("1.05", "1.1", -1),
    ("1.7", "1.7b", -1),
    ("2.5.1-r8", "2.5.1a-r1", -1),
    ("1.3-r0", "1.3.1-r0", -1),
    ("1.3_pre1-r1", "1.3.2", -1),
    ("10-r1", "4", 1),
    ("7.0.17", "7.0.174", -1),
    ("1.0.0_pre20191002222144-r0", "1.0.0_pre20210530193627-r0", -1),
    ("1.2_git20240101", "1.2", 1),
    ("1.0_rc1", "1.0_beta9", 1),
    ("5.2.1.2-r1", "5.4", -1),
    ("20060720", "3.0.20060720", 1),
    ("1.0", "1.0", 0),
    ("1.0", "nonsense", 1),
]

DEB = [
    ("1.0", "1.0", 0),
    ("1.0~rc1", "1.0", -1),
    ("1.0a", "1.0+", -1),
    ("1.10", "1.9", 1),
    ("1.0-1", "1.0-1+b1", -1),
    ("1:0", "2", 1),
    ("0:1", "1", 0),
    ("1.01", "1.1", 0),
    ("1.0-1~bpo", "1.0-1", -1),
    ("1-2-3", "1-2-4", -1),
]

_TABLES = [*((rpm, *row) for row in RPM), *((apk, *row) for row in APK), *((deb, *row) for row in DEB)]


@pytest.mark.parametrize(("family", "left", "right", "order"), _TABLES, ids=lambda value: str(value)[:20])
def test_order(family, left, right, order):
    assert family.compare(left, right) == order
    assert family.compare(right, left) == -order


def test_epochs_may_be_left_out_of_account():
    assert rpm.compare("2:1.0-1", "1:1.0-1") == 1
    assert rpm.compare("2:1.0-1", "1:1.0-1", ignore_epoch=True) == 0
    assert deb.compare("1:1.0", "2.0", ignore_epoch=True) == -1


@pytest.mark.parametrize("family", [rpm, apk, deb], ids=["rpm", "apk", "deb"])
@settings(max_examples=200, deadline=None)
@given(st.tuples(*[st.from_regex(r"[0-9]?[0-9a-z.+~^_:-]{0,9}", fullmatch=True)] * 3))
def test_orders_are_total(family, versions):
    one, two, three = versions
    assert family.compare(one, one) == 0
    assert family.compare(one, two) == -family.compare(two, one)
    if family is deb and family.compare(one, two) <= 0 and family.compare(two, three) <= 0:
        assert family.compare(one, three) <= 0


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="dpkg is the oracle")
@settings(max_examples=30, deadline=None)
@given(*[st.from_regex(r"([0-2]:)?[0-9][0-9a-zA-Z.+~]{0,6}(-[0-9a-zA-Z.+~]{1,4})?", fullmatch=True)] * 2)
def test_order_is_dpkgs(left, right):
    order = deb.compare(left, right)
    relation = {-1: "lt", 0: "eq", 1: "gt"}[order]
    asked = subprocess.run(["dpkg", "--compare-versions", left, relation, right], capture_output=True, check=False)
    assert asked.returncode == 0, asked.stderr


@pytest.mark.parametrize(
    ("version", "text", "value"),
    [
        ("1.2", "1.2", True),
        ("1.2", "==1.2", True),
        ("1.2", "1.*", True),
        ("1:1.2", "1.2", True),
        ("1:1.2", "0:1.2", False),
        ("1:1.2", "<2", False),
        ("1.2", ">=1.1, <2, !=1.3", True),
        ("1.3", ">=1.1, <2, !=1.3", False),
        ("1.2", "", True),
    ],
)
def test_conditions(version, text, value):
    assert package_versions.fulfils(version, text, order=deb.compare) is value
    assert package_versions.fulfils(version, text, order=rpm.compare) is value
