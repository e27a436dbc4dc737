"""APT sources: parse, place and remove sources, keeping the other lines of their files."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statecore.system.hostfiles import apt_sources
from statecore.system.hostfiles.apt_sources import AptSource

STANZAS = """\
# Debian's own.
Types: deb deb-src
URIs: http://deb.debian.org/debian/
Suites: bookworm bookworm-updates
# Not all of it.
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 AAAA
 -----END PGP PUBLIC KEY BLOCK-----

# A bare comment.

Types: deb
URIs: https://v.test
Suites: stable/
Enabled: no
X-Repolib-Name: theirs
"""


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("deb http://d bookworm main contrib", AptSource("deb", "http://d", "bookworm", ("main", "contrib"))),
        ("deb http://d ./", AptSource("deb", "http://d", "./")),
        (
            "# deb-src http://d bookworm main # why",
            AptSource("deb-src", "http://d", "bookworm", ("main",), disabled=True, comment=" why"),
        ),
        ("#deb http://d bookworm", AptSource("deb", "http://d", "bookworm", disabled=True)),
        (
            "deb [ arch=amd64,arm64 signed-by=/k.gpg trusted=yes lang=de ] http://d bookworm main",
            AptSource(
                "deb",
                "http://d",
                "bookworm",
                ("main",),
                ("amd64", "arm64"),
                "/k.gpg",
                True,
                options={"arch": "amd64,arm64", "signed-by": "/k.gpg", "trusted": "yes", "lang": "de"},
            ),
        ),
        (
            "deb cdrom:[Debian 12 _Bookworm_]/ bookworm main",
            AptSource("deb", "cdrom:[Debian 12 _Bookworm_]/", "bookworm", ("main",)),
        ),
        ("# a comment about deb packages", None),
        ("deb http://d", None),
        ("deb", None),
        ("rpm http://d bookworm main", None),
        ("", None),
    ],
)
def test_lines(line, source):
    found = apt_sources.parse_line(line)
    assert (found and (found.line, found)) == (source and (found.line, apt_sources.replace(source, written=line)))


def test_lines_are_written_as_they_were_but_for_what_differs():
    source = apt_sources.parse_line("deb [lang=de arch=amd64] http://d bookworm main #x")
    assert source.line == "deb [lang=de arch=amd64] http://d bookworm main #x"
    assert apt_sources.replace(source, architectures=("arm64",), signed_by="/k").line == (
        "deb [lang=de arch=arm64 signed-by=/k] http://d bookworm main #x"
    )
    assert (
        apt_sources.replace(source, architectures=(), disabled=True).line == "# deb [lang=de] http://d bookworm main #x"
    )


def test_stanzas_are_one_source_for_each_type_place_and_suite():
    found = apt_sources.sources(STANZAS, stanzas=True)
    assert [(each.type, each.dist) for each in found] == [
        ("deb", "bookworm"),
        ("deb-src", "bookworm"),
        ("deb", "bookworm-updates"),
        ("deb-src", "bookworm-updates"),
        ("deb", "stable/"),
    ]
    assert "BEGIN PGP" in found[0].signed_by
    assert (found[4].disabled, found[4].comps) == (True, ())


def test_a_stanza_keeps_what_is_not_to_change():
    found = apt_sources.sources(STANZAS, stanzas=True)[0]
    wanted = apt_sources.replace(found, comps=("main", "contrib"), signed_by="/k.gpg", disabled=True)
    text = apt_sources.with_source(STANZAS, wanted, found, stanzas=True)
    assert text.startswith(
        "# Debian's own.\nTypes: deb deb-src\nURIs: http://deb.debian.org/debian/\nSuites: bookworm bookworm-updates\n"
        "# Not all of it.\nComponents: main contrib\nSigned-By: /k.gpg\nEnabled: no\n\n# A bare comment.\n\nTypes: deb\n"
    )
    assert text.endswith("Enabled: no\nX-Repolib-Name: theirs\n")
    new = apt_sources.with_source(
        "Types: deb", AptSource("deb", "http://d", "s", ("main",)), None, stanzas=True, comments=["why"]
    )
    assert new == "Types: deb\n\n# why\nTypes: deb\nURIs: http://d\nSuites: s\nComponents: main\n"


def test_removing_from_a_stanza():
    source = AptSource("deb", "http://deb.debian.org/debian", "bookworm-updates", ("main",))
    left = apt_sources.without(STANZAS, source, stanzas=True)
    assert "Suites: bookworm\n" in left
    assert (
        apt_sources.without(left, apt_sources.replace(source, dist="bookworm"), stanzas=True).count("Types: deb-src\n")
        == 1
    )
    assert apt_sources.without(STANZAS, apt_sources.replace(source, comps=("no",)), stanzas=True) == STANZAS
    only = "Types: deb\nURIs: http://d\nSuites: s\n"
    assert apt_sources.without(only, AptSource("deb", "http://d/", "s"), stanzas=True) == ""


def test_placing_and_removing_lines():
    text = "# top\ndeb http://d s main\ndeb http://e s main\n\nnonsense"
    found = apt_sources.sources(text, stanzas=False)[0]
    changed = apt_sources.with_source(text, apt_sources.replace(found, comps=("main", "x")), found, stanzas=False)
    assert changed == "# top\ndeb http://d s main x\ndeb http://e s main\n\nnonsense"
    assert apt_sources.without(changed, AptSource("deb", "http://d", "s", ("main",)), stanzas=False) == (
        "# top\ndeb http://d s x\ndeb http://e s main\n\nnonsense"
    )
    assert apt_sources.with_source(
        text, AptSource("deb", "http://f", "s"), None, stanzas=False, comments=["a", "b"]
    ).endswith("nonsense\ndeb http://f s # a b\n")


_WORD = st.from_regex(r"[a-z][a-z0-9./-]{0,8}", fullmatch=True)


@given(
    st.builds(
        AptSource,
        type=st.sampled_from(apt_sources.TYPES),
        uri=_WORD.map(lambda word: f"http://{word}"),
        dist=_WORD,
        comps=st.lists(_WORD, max_size=3).map(tuple),
        architectures=st.lists(st.sampled_from(["amd64", "arm64"]), max_size=2).map(tuple),
        signed_by=st.sampled_from(["", "/etc/k.gpg"]),
        trusted=st.sampled_from([None, True]),
        disabled=st.booleans(),
    ),
    st.text(alphabet="deb #[]htp:/\n", max_size=40),
    st.booleans(),
)
@example(AptSource(type="deb", uri="http://a", dist="a"), " ", True)
def test_what_is_placed_is_there_and_what_is_removed_is_not(source, text, stanzas):
    def bare(each):
        return apt_sources.replace(each, options={}, written="", trusted=bool(each.trusted))

    placed = apt_sources.with_source(text, source, None, stanzas=stanzas)
    found = [bare(each) for each in apt_sources.sources(placed, stanzas=stanzas)]
    if not text.strip():
        assert found == [bare(source)]
    assert bare(source) in found or stanzas
    left = apt_sources.without(placed, source, stanzas=stanzas)
    assert bare(source) not in [bare(each) for each in apt_sources.sources(left, stanzas=stanzas)]
