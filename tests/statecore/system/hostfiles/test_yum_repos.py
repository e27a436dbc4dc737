"""``.repo`` files: parse and edit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from statecore.system.hostfiles import yum_repos

TEXT = """\
# top
[one]
name = One
# why
baseurl=http://a/
  http://b/
enabled: 1

[two]
name=Two
"""


def test_reading():
    assert yum_repos.sections(TEXT) == {
        "one": {"name": "One", "comments": ["why"], "baseurl": "http://a/\nhttp://b/", "enabled": "1"},
        "two": {"name": "Two"},
    }


def test_options_are_set_and_removed_where_they_are():
    assert yum_repos.edited(TEXT, "one", {"enabled": "0", "cost": "5"}, ["baseurl"]) == (
        "# top\n[one]\nname = One\n# why\nenabled=0\ncost=5\n\n[two]\nname=Two\n"
    )
    assert yum_repos.edited(TEXT, "two", {"baseurl": "a\nb"}, comments=["x"]).endswith(
        "[two]\nname=Two\nbaseurl=a\n b\n# x\n"
    )
    assert yum_repos.edited(TEXT, "three", {"name": "Three"}).endswith("[two]\nname=Two\n\n[three]\nname=Three\n")
    assert yum_repos.edited("", "new", {"name": "N"}) == "[new]\nname=N\n"


def test_removing():
    assert yum_repos.without(TEXT, "one") == "# top\n\n[two]\nname=Two\n"
    assert yum_repos.sections(yum_repos.without(TEXT, "two")) == {"one": yum_repos.sections(TEXT)["one"]}
    assert yum_repos.without("[a]\nname=A\n", "a").strip() == ""


@given(
    st.sampled_from(["one", "two", "new"]),
    st.dictionaries(
        st.sampled_from(["name", "enabled", "cost", "baseurl"]), st.from_regex(r"[a-z0-9:/]{1,9}", fullmatch=True)
    ),
    st.lists(st.sampled_from(["gpgkey", "exclude"]), max_size=2),
)
def test_what_was_set_is_what_is_read(name, options, removed):
    before = yum_repos.sections(TEXT)
    after = yum_repos.sections(yum_repos.edited(TEXT, name, options, removed))
    assert after == {**before, name: {**before.get(name, {}), **options}}
