"""Requirements in the forms that pip accepts, and what is made of versions that are none."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from statecore.system.packages import python_versions
from statecore.system.packages.python_versions import Requirement


@pytest.mark.parametrize(
    ("version", "text", "wanted"),
    [
        ("1.0a1", ">=0.5", False),
        ("1.0a1", ">=0.5a1", True),
        ("1.0.dev1", "==1.0.*", False),
        ("1.0a1", "===1.0a1", True),
        ("1.0a1", "", True),
        ("1.0.post1", ">=1.0", True),
    ],
)
def test_a_pre_release_has_to_be_asked_for(version, text, wanted):
    assert python_versions.fulfils(version, python_versions.requirement(f"x{text}").conditions) is wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Django", Requirement("django")),
        ("zope.interface", Requirement("zope-interface")),
        ("django >= 1.6, <= 1.7", Requirement("django", SpecifierSet(">=1.6,<=1.7"))),
        ("django (>=1.6)", Requirement("django", SpecifierSet(">=1.6"))),
        ("requests[security, socks]==2.0", Requirement("requests", SpecifierSet("==2.0"))),
        ("pywin32 ; sys_platform == 'win32'", Requirement("pywin32")),
        ("x>1;python_version<'3'", Requirement("x", SpecifierSet(">1"))),
        ("x @ https://a.test/x.zip", Requirement("x")),
        ("https://a.test/x.zip", Requirement("")),
        ("git+https://a.test/x.git", Requirement("")),
        ("git+https://a.test/x.git#egg=A_b", Requirement("a-b")),
        ("git+https://a.test/x.git#egg=x>=1", Requirement("x", SpecifierSet(">=1"))),
        ("./x", Requirement("")),
        ("/w/a_b-1.0-py3-none-any.whl", Requirement("a-b", SpecifierSet("==1.0"))),
        ("/w/a-1.0-1-py3-none-any.whl", Requirement("a", SpecifierSet("==1.0"))),
        ("x-1.0.tar.gz", Requirement("")),
    ],
)
def test_requirement(text, wanted):
    assert python_versions.requirement(text) == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x=1", "Invalid version specification in package x=1. '=' is not supported, use '==' instead."),
        ("x>>1", "is not a requirement"),
        ("x y", "is not a requirement"),
        ("", "is not a requirement"),
        ("-x", "is not a requirement"),
    ],
)
def test_what_is_no_requirement(text, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        python_versions.requirement(text)


def test_what_is_no_version_is_the_oldest():
    assert sorted(["1.0", "nonsense", "0.1", "a b"], key=python_versions.order) == ["a b", "nonsense", "0.1", "1.0"]
    assert python_versions.pre_release("nonsense") == ""
    assert not python_versions.fulfils("nonsense", SpecifierSet("==1.0"))


@pytest.mark.parametrize(
    ("version", "kind"), [("1.0", ""), ("1a1", "a"), ("1.beta2", "b"), ("1c1", "rc"), ("1.dev1", "dev")]
)
def test_pre_release(version, kind):
    assert python_versions.pre_release(version) == kind


@pytest.mark.parametrize(
    ("version", "given", "refused"),
    [
        ("9.0.3", {"use_wheel": True}, ""),
        ("1.3", {"use_wheel": True}, "'use_wheel' option is only supported in pip between 1.4 and 9.0.3"),
        ("23.1", {"no_use_wheel": True}, "'no_use_wheel' option is only supported in pip between 1.4 and 9.0.3"),
        ("6.1", {"no_binary": ":all:"}, "'no_binary' option is only supported in pip 7.0.0 and newer"),
        ("23.1", {"no_binary": ":all:"}, ""),
    ],
)
def test_options_about_wheels(version, given, refused):
    nothing = {"use_wheel": False, "no_use_wheel": False, "no_binary": None}
    assert refused in python_versions.wheel_options_refused(version, **{**nothing, **given})
    assert bool(refused) == bool(python_versions.wheel_options_refused(version, **{**nothing, **given}))
